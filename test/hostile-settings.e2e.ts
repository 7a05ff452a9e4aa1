import { useHostileSettings } from './setup/hostile-settings.js';

// A database may give its sessions any settings: no request and no command may mean something else then.
useHostileSettings();
await import('./create-plant.e2e.js');
await import('./idempotent-create.e2e.js');
await import('./token-commands.e2e.js');
await import('./migrations.e2e.js');

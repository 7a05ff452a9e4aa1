import { useHostileSettings } from '../setup/database/hostile-settings.js';

// A database may give its sessions any settings: no request and no command may mean something else then.
useHostileSettings();
await import('../create/create-plant.e2e.js');
await import('../create/idempotent-create.e2e.js');
await import('../tokens/token-commands.e2e.js');
await import('./migrations.e2e.js');

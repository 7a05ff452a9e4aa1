import { useHostileSettings } from '../setup/database/hostile-settings.js';

// A database may give its sessions any settings: no statement may mean something else then. hostile-settings.server.ts
// runs more files with them.
useHostileSettings();
await import('../create/idempotent-create.e2e.js');
await import('./migrations.e2e.js');

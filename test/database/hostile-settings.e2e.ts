import { useHostileSettings } from '../setup/database/hostile-settings.js';

// A database may give its sessions any settings: no statement may mean something else then. The other suites that reach the
// database run with them in hostile-settings.server.ts.
useHostileSettings();
await import('../create/idempotent-create.e2e.js');
await import('./migrations.e2e.js');

import { useHostileSettings } from '../setup/database/hostile-settings.js';

// A role may give its sessions any settings: still, no plant is acknowledged that a failover loses, and no request and no
// command means something else.
useHostileSettings();
await import('./durability.server.js');
await import('../create/create-plant.e2e.js');
await import('../tokens/token-commands.e2e.js');

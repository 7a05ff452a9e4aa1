import { useHostileSettings } from '../setup/database/hostile-settings.js';

// A role may give its sessions any settings: still, no plant is acknowledged that a failover loses.
useHostileSettings();
await import('./durability.server.js');

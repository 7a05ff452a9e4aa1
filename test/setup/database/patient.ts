import { readConfig, type DatabaseConfig } from '../../../src/config/config.js';

/** For tests that are not about time limits: only a statement that hangs takes longer, also on a busy machine. */
export const PATIENT = { DATABASE_TIMEOUT_MS: '20000' };

/** The settings of a database, patient, with others of the test, such as its `url` or `dataDir`. */
export function patientConfig<Settings extends Partial<DatabaseConfig>>(
  settings: Settings,
): ReturnType<typeof readConfig>['database'] & Settings {
  return { ...readConfig(PATIENT).database, ...settings };
}

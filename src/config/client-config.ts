import { readSecrets } from './secrets.js';

/** The settings of a command that sends requests to a service. */
export interface ClientConfig {
  /** undefined: not set. */
  readonly token: string | undefined;
  /** Where the command was called; `plant-store` itself works in the folder of the project. */
  readonly callerDir: string;
}

/**
 * @param env the variables, by default those of the process
 * @throws ConfigError when the file of the token cannot be used
 */
export function readClientConfig(env = process.env): ClientConfig {
  const callerDir = readCallerDir(env);
  const { values } = readSecrets(env, ['PLANT_STORE_TOKEN'], callerDir);
  return { token: values['PLANT_STORE_TOKEN'] || undefined, callerDir };
}

/** @returns the folder in which a command was called, to which its paths are relative */
export function readCallerDir(env = process.env): string {
  return env['PLANT_STORE_CALLER_DIR'] || process.cwd();
}

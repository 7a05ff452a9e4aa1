/** The settings of a command that sends requests to a service. */
export interface ClientConfig {
  /** undefined: not set. */
  readonly token: string | undefined;
  /** Where the command was called; `plant-store` itself works in the folder of the project. */
  readonly callerDir: string;
}

/** @param env the variables, by default those of the process */
export function readClientConfig(env = process.env): ClientConfig {
  return {
    token: env['PLANT_STORE_TOKEN'] || undefined,
    callerDir: env['PLANT_STORE_CALLER_DIR'] || process.cwd(),
  };
}

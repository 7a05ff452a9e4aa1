/** A setting that cannot be used. The message names the variable and never repeats its value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

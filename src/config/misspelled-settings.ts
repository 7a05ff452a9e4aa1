import { distance } from 'fastest-levenshtein';

/** Two letters that are swapped count as two. */
const MAX_DISTANCE = 2;

/** Heroku and other platforms set it for the number of processes. */
const PROCESSES = 'WEB_CONCURRENCY';

/**
 * A variable that nearly is a setting is a mistake; every other one belongs to another program.
 *
 * @param names of variables
 * @param settings all names of settings
 * @returns a sentence for each variable whose name differs from that of a setting in one or two letters
 */
export function misspelledSettings(
  names: readonly string[],
  settings: readonly string[],
): string[] {
  return names.flatMap((name) => {
    const meant = settings.includes(name)
      ? undefined
      : settings.find((setting) => isNearly(name, setting));
    return meant === undefined ? [] : [`${name} is not a setting: did you mean ${meant}?`];
  });
}

/** Of a short name, one letter may be wrong: HOME is not HOST. */
function isNearly(name: string, setting: string): boolean {
  return (
    distance(name.toUpperCase(), setting) <= Math.min(MAX_DISTANCE, Math.floor(setting.length / 4))
  );
}

/** @returns what an operator should know of the variables of the process */
export function warningsAbout(names: readonly string[], settings: readonly string[]): string[] {
  const warnings = misspelledSettings(names, settings);
  if (names.includes(PROCESSES)) {
    warnings.push(
      `${PROCESSES} has no effect: the service is one process. For more, run more instances of it, as docs/scaling.md says.`,
    );
  }
  return warnings;
}

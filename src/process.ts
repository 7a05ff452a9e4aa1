// What each program of the service needs before it loads anything else.

/** The oldest Node of each line that tells a waiting pipelined response that its client has gone (nodejs/node#62534). */
const OLDEST: readonly (readonly [major: number, minor: number])[] = [
  [24, 16],
  [26, 1],
];

/**
 * Refuses a Node that is too old. Then a message that cannot be written no longer ends the process: the disk may be full, or the
 * program that reads it may have ended.
 */
export function prepareProcess(): void {
  if (!isSupported(process.versions.node)) {
    // Such a Node would start the service, which would then lose track of its requests, or fail in every one of them.
    const oldest = OLDEST.map((version) => version.join('.')).join(' or ');
    process.stderr.write(
      `The Plant Store needs Node ${oldest}, or newer, and this is Node ${process.versions.node}: use ./plant-store or ` +
        'npm start, which run the Node that "npm ci" installs, or install a newer one.\n',
    );
    process.exit(1);
  }
  for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined);
}

function isSupported(version: string): boolean {
  const [major, minor] = version.split('.').map(Number) as [number, number];
  const line = OLDEST.find(([oldestMajor]) => oldestMajor === major);
  return line === undefined ? major > OLDEST.at(-1)![0] : minor >= line[1];
}

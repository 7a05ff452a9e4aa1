/** The oldest major version of Node that has what the service uses, such as AsyncDisposableStack. */
const OLDEST = 24;

const { node } = process.versions;

// An older Node would start the service, which would then fail in every request.
if (Number.parseInt(node) < OLDEST) {
  process.stderr.write(
    `The Plant Store needs Node ${OLDEST} or newer, and this is Node ${node}: use ./plant-store or npm start, which run ` +
      'the Node that "npm ci" installs, or install a newer one.\n',
  );
  process.exit(1);
}

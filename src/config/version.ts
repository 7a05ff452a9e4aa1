import { readFileSync } from 'node:fs';

/** Beside the folder of the build, and beside `src`. */
const PACKAGE_JSON = new URL('../../package.json', import.meta.url);

/** The version of the service, such as 1.0.0. */
export const { version } = JSON.parse(readFileSync(PACKAGE_JSON, 'utf8')) as { version: string };

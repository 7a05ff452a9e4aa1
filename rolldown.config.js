import { readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

/**
 * Bundles the packages of the service: a start loads 49 files of them instead of 2,450. They are in a folder node_modules of
 * the build, where Node looks first. See docs/decisions/0015-bundled-packages.md.
 */

const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'));

/** These read files beside their code. */
const NOT_BUNDLED = ['@electric-sql/pglite', 'swagger-ui-dist'];

/** Nest imports them where they are installed. */
const NOT_INSTALLED = ['@fastify/static', /^@nestjs\/(microservices|websockets)\b/];

/** Files that the service imports besides the main file of a package. */
export const singleFiles = ['typeorm/error/QueryFailedError.js'];

/** The packages that the build contains. */
export const packages = Object.keys(dependencies).filter((name) => !NOT_BUNDLED.includes(name));

/** Files that exist only here: each exports again what its package exports to Node. */
const FACADES = resolve('facades');

/** A bundle of a CommonJS package has no named exports of its own. */
const facades = {
  name: 'facades',
  resolveId: (id) => (id.startsWith(FACADES) ? id : undefined),
  async load(id) {
    if (!id.startsWith(FACADES)) return undefined;
    const name = relative(FACADES, id);
    const exports = Object.keys(await import(name)).filter((key) => key !== 'module.exports');
    return `import '${name}'; export { ${exports.join()} } from '${name}';`;
  },
  generateBundle() {
    const source = JSON.stringify({ type: 'module', main: 'index.js' });
    for (const name of ['.chunks', ...packages]) {
      this.emitFile({ type: 'asset', fileName: `${name}/package.json`, source });
    }
  },
};

export default {
  platform: 'node',
  // Rolldown would look for one in the folder of each file.
  tsconfig: false,
  input: Object.fromEntries([
    ...packages.map((name) => [`${name}/index`, join(FACADES, name)]),
    ...singleFiles.map((file) => [file.replace(/\.js$/, ''), join(FACADES, file)]),
  ]),
  external: [...NOT_BUNDLED, ...NOT_INSTALLED],
  plugins: [facades],
  output: {
    // The build moves it to dist/node_modules: meanwhile, Nest empties dist.
    dir: 'dist-packages',
    cleanDir: true,
    chunkFileNames: '.chunks/[name].js',
    // Decorators need reflect-metadata, which must run before them, as without a bundle.
    strictExecutionOrder: true,
  },
  logLevel: 'warn',
};

/** The direction of imports, as docs/architecture.md draws it. */
const modules = 'plants|auth|health|metrics';

const entryPoints = '^src/(main|cli)\\.ts$';

const programs = `${entryPoints}|^src/database/data-source\\.ts$`;

module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      comment: 'Merge two files that import each other, or move their common part to a third file.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'errors-and-config-stand-alone',
      comment: 'Every folder may import them, so they import no other folder.',
      severity: 'error',
      from: { path: '^src/(errors|config)/' },
      to: { path: '^src/', pathNot: '^src/(errors|config)/' },
    },
    {
      name: 'errors-and-config-apart',
      severity: 'error',
      from: { path: '^src/(errors|config)/' },
      to: { path: '^src/(errors|config)/', pathNot: '^src/$1/' },
    },
    {
      name: 'foundations-do-not-know-features',
      severity: 'error',
      from: { path: '^src/(database|http|logging|tracing|openapi)/' },
      to: { path: `^src/(${modules})/` },
    },
    {
      name: 'records-do-not-know-foundations',
      severity: 'error',
      from: { path: '^src/(logging|tracing)/' },
      to: { path: '^src/', pathNot: '^src/(logging|tracing|errors|config)/' },
    },
    {
      name: 'folders-do-not-know-what-starts-and-stops-the-app',
      severity: 'error',
      from: { path: '^src/[^/]+/', pathNot: '^src/cli/' },
      to: { path: '^src/cli/|^src/(start|shutdown|start-errors)\\.ts$' },
    },
    {
      name: 'the-service-does-not-know-the-commands',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/cli(/|\\.ts$)' },
      to: { path: '^src/cli/' },
    },
    {
      name: 'plants-do-not-know-auth',
      comment: 'The guard checks the token before the service handles a plant.',
      severity: 'error',
      from: { path: '^src/plants/' },
      to: { path: '^src/auth/' },
    },
    {
      name: 'nothing-imports-the-entry-points',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: entryPoints },
    },
    {
      name: 'entry-points-load-the-rest-later',
      comment:
        'A Node that is too old cannot load the modules of the service, and would say that instead. Use import().',
      severity: 'error',
      from: { path: entryPoints },
      to: { path: '^src/', pathNot: '^src/(process|stop-on-signal)\\.ts$', dynamic: false },
    },
    {
      name: 'only-entry-points-build-the-app',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot:
          '^src/(start|app|app\\.module|app\\.spec|auth/with-access-tokens\\.spec)\\.ts$|^src/cli/',
      },
      to: { path: '^src/(app|app\\.module|auth/with-access-tokens)\\.ts$' },
    },
    {
      name: 'express-stays-at-the-edge',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: '^src/(app\\.ts|(http|errors|openapi)/)|\\.guard\\.ts$',
      },
      to: { path: 'node_modules/(@types/)?express(-serve-static-core)?/' },
    },
    {
      name: 'typeorm-stays-in-the-database',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: '^src/database/|\\.(entity|repository|service|module)\\.ts$',
      },
      to: { path: 'node_modules/(typeorm|@nestjs/typeorm|pg|pg-copy-streams)/' },
    },
    {
      name: 'product-does-not-import-tests',
      severity: 'error',
      from: { path: '^src/', pathNot: '\\.spec\\.ts$' },
      to: { path: '^test/|\\.spec\\.ts$' },
    },
    {
      name: 'product-does-not-import-the-benchmark',
      severity: 'error',
      from: { path: '^(src|test)/' },
      to: { path: '^bench/' },
    },
    {
      name: 'benchmark-measures-from-outside',
      comment:
        'It starts what was built, as an operator does; it shares the Postgres server and the charts of the tests.',
      severity: 'error',
      from: { path: '^bench/' },
      to: { path: '^(src|test)/', pathNot: '^test/setup/' },
    },
    {
      name: 'no-development-dependency-in-the-product',
      severity: 'error',
      from: { path: '^src/', pathNot: '\\.spec\\.ts$' },
      to: {
        dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'],
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'no-unused-files',
      // int64-param.ts waits for the first operation with an id in its path: docs/architecture.md, "How to add …".
      comment: 'A file that no program needs is dead.',
      severity: 'error',
      from: { path: programs },
      to: {
        path: '^src/.*\\.ts$',
        pathNot: `\\.spec\\.ts$|/int64-param\\.ts$|${programs}`,
        reachable: false,
      },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};

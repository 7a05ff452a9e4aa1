import { existsSync } from 'node:fs';
import js from '@eslint/js';
import tseslint from 'typescript-eslint';

const UNCHECKED =
  'Use fetchDocumented of test/setup/http/fetch-documented.ts, which checks that the response is as openapi.json says.';

const SETTABLE =
  'The date may be set back or ahead at any time: measure ages and waits with performance.now().';

export default tseslint.config(
  // The TypeScript of examples/ needs types that its test generates, and the test compiles it.
  { ignores: ['**/dist/', 'dist-dev/', 'coverage/', 'test/mutation/sandbox/', 'examples/*.ts'] },
  // Their packages are installed when they are first run; without them, their types are not known.
  { ignores: ['bench/', 'test/browser/'].filter((folder) => !existsSync(`${folder}node_modules`)) },
  js.configs.recommended,
  {
    files: ['examples/*.js'],
    languageOptions: {
      globals: Object.fromEntries(
        ['AbortSignal', 'console', 'fetch', 'process', 'setTimeout', 'URL'].map((name) => [
          name,
          'readonly',
        ]),
      ),
    },
  },
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_' },
      ],
    },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/**/*.spec.ts'],
    rules: {
      'no-restricted-properties': ['error', { object: 'Date', property: 'now', message: SETTABLE }],
      'no-restricted-syntax': [
        'error',
        { selector: 'NewExpression[callee.name=Date][arguments.length=0]', message: SETTABLE },
        { selector: 'CallExpression[callee.name=Date]', message: SETTABLE },
        // An option of lru-cache.
        { selector: 'Property[key.name=perf]', message: SETTABLE },
      ],
    },
  },
  {
    files: ['src/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          name: '@nestjs/common',
          importNames: ['Body'],
          message:
            'It gives a handler nothing, because no body is parsed before the guard: use @JsonBody.',
        },
      ],
    },
  },
  {
    // Tokens expire at a date.
    files: ['src/auth/{jwt-verifier,token-verifier.service}.ts', 'src/cli/token-table.ts'],
    rules: { 'no-restricted-properties': 'off' },
  },
  {
    files: ['test/**/*.ts', 'src/**/*.spec.ts'],
    rules: { '@typescript-eslint/no-unsafe-assignment': 'off' },
  },
  {
    files: ['test/**/*.ts', 'src/**/*.spec.ts'],
    rules: {
      'no-restricted-globals': [
        'error',
        { globals: [{ name: 'fetch', message: UNCHECKED }], checkGlobalObject: true },
      ],
    },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          paths: ['node:http', 'node:https', 'http', 'https', 'undici'].map((name) => ({
            name,
            importNames: ['default', 'request', 'get', 'fetch'],
            message: UNCHECKED,
          })),
        },
      ],
    },
  },
  {
    // The function that checks, and requests to etcd and Patroni.
    files: ['test/setup/http/fetch-documented.ts', 'test/faults/cluster-rig/{cluster,node}.ts'],
    rules: { 'no-restricted-globals': 'off' },
  },
  {
    // These give what they receive to readDocumented, or to a browser whose responses are checked.
    files: [
      'test/faults/post.ts',
      'test/http/unread-body.e2e.ts',
      'test/browser/swagger-ui.browser.ts',
    ],
    rules: { 'no-restricted-imports': 'off' },
  },
);

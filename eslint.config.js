import js from '@eslint/js';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  // The TypeScript of examples/ needs types that its test generates, and the test compiles it.
  {
    ignores: [
      'dist/',
      'dist-bench/',
      'dist-failover/',
      'dist-faults/',
      'coverage/',
      'examples/*.ts',
    ],
  },
  js.configs.recommended,
  {
    files: ['examples/*.js'],
    languageOptions: {
      globals: Object.fromEntries(
        ['AbortSignal', 'fetch', 'process', 'setTimeout', 'URL'].map((name) => [name, 'readonly']),
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
    // Nest's modules are classes without members, and Jest's matchers are typed as any.
    files: ['src/**/*.module.ts'],
    rules: { '@typescript-eslint/no-extraneous-class': 'off' },
  },
  {
    files: ['test/**/*.ts', 'src/**/*.spec.ts'],
    rules: { '@typescript-eslint/no-unsafe-assignment': 'off' },
  },
);

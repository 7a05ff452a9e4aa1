// Usage: node generate-types.js http://127.0.0.1:3000/openapi.json > plant-store.ts
import openapiTS, { astToString } from 'openapi-typescript';
import ts from 'typescript';

// Without this, an int64 would be a number, which is exact only up to 2^53.
const bigint = ts.factory.createKeywordTypeNode(ts.SyntaxKind.BigIntKeyword);
const types = await openapiTS(new URL(process.argv[2]), {
  transform: ({ format }) => (format === 'int64' ? bigint : undefined),
});
process.stdout.write(astToString(types));

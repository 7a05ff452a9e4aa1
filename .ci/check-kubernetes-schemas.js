// Checks that the objects fit the schemas of the Kubernetes API. What they promise is checked by kubernetes.spec.ts.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { parse } from 'yaml';

const DIR = join(import.meta.dirname, '../deploy/kubernetes');
const read = (name) => parse(readFileSync(join(DIR, name), 'utf8'));

const { resources } = read('kustomization.yaml');
const objects = [...resources, 'migration/job.yaml'].map(read);
await checkSchemas(objects);

/** The validators find wrong values, such as a memory of 1Mx; the types find unknown fields, which the validators accept. */
async function checkSchemas(objects) {
  for (const object of objects) {
    const models = await import(`kubernetes-models/${object.apiVersion}`);
    assert.ok(models[object.kind], `${object.apiVersion} has no kind ${object.kind}`);
    new models[object.kind](object).validate();
  }
  const source = objects.map(
    (object) =>
      `(${JSON.stringify(object)}) satisfies import('kubernetes-models/${object.apiVersion}').I${object.kind};`,
  );
  // This file is only in memory; its place decides where the types are found.
  const file = join(import.meta.dirname, 'kubernetes-objects.mts');
  const options = { module: ts.ModuleKind.NodeNext, strict: true, skipLibCheck: true, types: [] };
  const host = ts.createCompilerHost(options);
  const { getSourceFile } = host;
  host.getSourceFile = (name, language, ...rest) =>
    name === file
      ? ts.createSourceFile(name, source.join('\n'), language)
      : getSourceFile(name, language, ...rest);
  const program = ts.createProgram([file], options, host);
  const problems = ts.getPreEmitDiagnostics(program).map(({ start, messageText }) => {
    const { line } = program.getSourceFile(file).getLineAndCharacterOfPosition(start ?? 0);
    return `${objects[line].kind}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
  });
  assert.deepEqual(problems, []);
}

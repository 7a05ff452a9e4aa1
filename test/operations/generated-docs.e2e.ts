// Tables and samples in the documentation are made from the code: `npm run docs` writes them, and this test compares them.

import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { z } from 'zod';
import { SECRET_SETTINGS, settings } from '../../src/config/settings.js';
import { ERRORS } from '../../src/errors/errors.js';
import { readMetrics } from '../setup/service/metrics.js';
import { startService, type TestService } from '../setup/service/service.js';

const isWriting = process.env['DOCS'] === 'write';

const read = (file: string) => readFileSync(file, 'utf8');

let service: TestService;

beforeAll(async () => {
  service = await startService();
  // A metric shows its labels when it has a value.
  await service.post('{"id":1,"name":"a"}');
});
afterAll(() => service.close());

interface Setting {
  readonly name: string;
  readonly meaning: string;
  readonly range: string;
  /** As an operator writes it. */
  readonly byDefault: string | undefined;
  readonly unset: string | undefined;
  readonly example: string | undefined;
}

const SETTINGS = Object.entries(settings.shape).map(([name, schema]): Setting => {
  const { meaning, unset, example } = schema.meta() as unknown as Setting;
  const { range } = (schema.unwrap() as z.ZodType).meta() as unknown as Setting;
  const { def } = schema as { def: { defaultValue?: string } };
  return { name, meaning, range, byDefault: def.defaultValue, unset, example };
});

const row = (...cells: readonly string[]) => `| ${cells.join(' | ')} |`;

const table = (columns: readonly string[], rows: readonly string[]) =>
  ['', row(...columns), row(...columns.map(() => '---')), ...rows, ''].join('\n');

const code = (text: string) => `\`${text}\``;

function settingsTable(): string {
  return table(
    ['variable', 'default', 'range', 'meaning'],
    SETTINGS.map(({ name, byDefault, unset, range, meaning }) =>
      row(code(name), byDefault === undefined ? unset! : code(byDefault), range, meaning),
    ),
  );
}

function exampleEnv(): string {
  const files = new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(
    SECRET_SETTINGS.map((name) => `${name}_FILE`),
  );
  const head = `Settings of the Plant Store. Copy this file to .env, and remove the # in front of a setting that you change. Each setting is shown with its default, or with an example. Variables of the environment take precedence over this file. An empty variable counts as not set. A secret may be in a file: ${files} is the path of the file.`;
  const entries = SETTINGS.map(({ name, meaning, range, unset, byDefault, example }) => {
    const plain = meaning.replaceAll(/`|\[|\]\([^)]*\)/g, '');
    const otherwise = unset === undefined ? '' : ` Not set: ${unset.replaceAll('`', '')}.`;
    const values = range === 'any text' ? '' : ` Values: ${range.replaceAll('`', '')}.`;
    const about = `${plain[0]!.toUpperCase()}${plain.slice(1)}.${values}${otherwise}`;
    return `${comment(about)}\n#${name}=${byDefault ?? example!}\n`;
  });
  return [`${comment(head)}\n`, ...entries].join('\n');
}

const comment = (text: string) => text.replaceAll(/(.{1,118})(?: |$)/g, '# $1\n').trimEnd();

function errorsTable(): string {
  return table(
    ['error', 'status', 'when', 'what to do'],
    ERRORS.map(({ code: number, when, remedy }) =>
      row(String(number), String(number).slice(0, 3), when, remedy),
    ),
  );
}

interface Schema {
  readonly properties: Readonly<
    Record<string, { type: string; format?: string; description: string }>
  >;
  readonly required?: readonly string[];
}

/** The fields of a plant, as the OpenAPI document has them. */
function fieldsTable(): string {
  const { components } = JSON.parse(read('openapi.json')) as {
    components: { schemas: { Plant: Schema; NewPlant: { allOf: [unknown, Schema] } } };
  };
  const { Plant, NewPlant } = components.schemas;
  const rows = [NewPlant.allOf[1], Plant].flatMap(({ properties, required }) =>
    Object.entries(properties).map(([name, { type, format, description }]) => {
      const isRequired = required?.includes(name) === true;
      return row(
        code(name),
        [type, format].filter(Boolean).join(', '),
        isRequired ? 'yes' : 'no',
        description,
      );
    }),
  );
  return table(['field', 'type', 'required', 'meaning'], rows);
}

async function metricsTable(): Promise<string> {
  const text = await readMetrics(service.url, service.token);
  const helps = [...text.matchAll(/^# HELP (plant_store_\w+) (.+)$/gm)];
  const labelsOf = (name: string) => {
    const [, labels = ''] = new RegExp(`^${name}(?:_bucket)?\\{(.+)\\}`, 'm').exec(text) ?? [];
    const names = Array.from(labels.matchAll(/(\w+)="/g), ([, label]) => label!);
    return names
      .filter((label) => label !== 'le')
      .map(code)
      .join(', ');
  };
  const rows = helps.map(([, name, help]) => row(code(name!), labelsOf(name!), help!));
  return table(['metric', 'labels', 'meaning'], rows.sort());
}

/** @returns the text with what is between `<!-- name -->` and `<!-- end of name -->` replaced */
function replacePart(text: string, name: string, content: string): string {
  const [begin, end] = [`<!-- ${name} -->\n`, `<!-- end of ${name} -->`];
  const [before, rest] = text.split(begin);
  const [, after] = rest?.split(end) ?? [];
  if (after === undefined) throw new Error(`There is no part ${name}.`);
  return `${before}${begin}${content}\n${end}${after}`;
}

/** The samples that the page shows; it links to the others. */
const withSamples = (text: string) =>
  Object.entries({ 'store-plant.sh': 'sh', 'store-plant.js': 'js' }).reduce(
    (page, [file, language]) =>
      replacePart(page, file, `\n\`\`\`${language}\n${read(`examples/${file}`)}\`\`\`\n`),
    text,
  );

const PAGES: readonly (readonly [string, (text: string) => string | Promise<string>])[] = [
  ['.env.example', exampleEnv],
  ['docs/settings.md', (text) => replacePart(text, 'settings', settingsTable())],
  [
    'docs/api.md',
    (text) => replacePart(replacePart(text, 'errors', errorsTable()), 'fields', fieldsTable()),
  ],
  ['docs/monitoring.md', async (text) => replacePart(text, 'metrics', await metricsTable())],
  ['docs/clients.md', withSamples],
];

it.each(PAGES)('%s has what the code has; otherwise, run: npm run docs', async (file, generate) => {
  const generated = await generate(read(file));
  const text = file.endsWith('.md') ? formatted(file, generated) : generated;
  if (isWriting) writeFileSync(file, text);
  expect(read(file)).toBe(text);
});

function formatted(file: string, text: string): string {
  const { stdout, stderr } = spawnSync('node_modules/.bin/prettier', ['--stdin-filepath', file], {
    input: text,
    encoding: 'utf8',
  });
  if (stdout === '') throw new Error(stderr);
  return stdout;
}

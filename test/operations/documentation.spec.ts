import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { readConfig, SECRET_SETTINGS, settings } from '../../src/config/config.js';
import { PLANT_FIELDS } from '../../src/plants/dto/plant.js';
import { runInProcess } from '../setup/service/cli.js';

const textOf = (file: string) => readFileSync(file, 'utf8');

const { version, scripts } = JSON.parse(textOf('package.json')) as {
  version: string;
  scripts: object;
};

/** The text of the cells, row by row, of the first table below a heading. */
function tableBelow(file: string, heading: string): string[][] {
  const part = textOf(file).split(`\n## ${heading}\n`)[1];
  if (part === undefined) throw new Error(`${file} has no heading "## ${heading}".`);
  const rows = part
    .split('\n## ')[0]!
    .split('\n')
    .filter((line) => line.startsWith('|'));
  return rows.slice(2).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** A page without its blocks of code. */
const proseOf = (file: string) => textOf(file).replaceAll(/^```[^]*?^```$/gm, '');

const codeIn = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);

/** The anchors that GitHub gives to the headings of a page. */
const anchorsOf = (file: string) =>
  [...textOf(file).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );

const ALL_SETTINGS = Object.keys(settings.shape).sort();

/** The parsed value of a setting; undefined if it is wrong. */
const parsed = (name: string, value: string | undefined): unknown =>
  settings.shape[name as keyof typeof settings.shape].safeParse(value).data;

const defaultOf = (name: string) => parsed(name, undefined);

/** The settings of .env.example, which are commented out, with their values. */
const examples = [...textOf('.env.example').matchAll(/^#([A-Z][A-Z0-9_]*)=(.*)$/gm)].map(
  ([, name, value]) => [name!, value!] as const,
);

describe('the documentation is complete', () => {
  it('docs/settings.md has each setting once', () => {
    const names = tableBelow('docs/settings.md', 'All settings').flatMap(([cell]) => codeIn(cell!));
    expect(names.sort()).toEqual(ALL_SETTINGS);
  });

  it('docs/settings.md has the default of each setting', () => {
    for (const [variables, defaults] of tableBelow('docs/settings.md', 'All settings')) {
      const names = codeIn(variables!);
      const values = codeIn(defaults!);
      if (values.length === 0) {
        // A cell in words: the setting has no default.
        expect(names.map(defaultOf)).toEqual(names.map(() => undefined));
      } else {
        expect(names.map((name, i) => parsed(name, values[i]))).toEqual(names.map(defaultOf));
      }
    }
  });

  it('docs/settings.md and .env.example name the file variable of each secret setting', () => {
    const files = SECRET_SETTINGS.map((name) => `${name}_FILE`).sort();
    const named = codeIn(textOf('docs/settings.md')).filter((text) => text.endsWith('_FILE'));
    expect([...new Set(named)].sort()).toEqual(files);
    const inExample = textOf('.env.example').match(/\b[A-Z][A-Z0-9_]*_FILE\b/g);
    expect(inExample?.sort()).toEqual(files);
  });

  it('.env.example has each setting once, commented out, with a valid value', () => {
    expect(examples.map(([name]) => name).sort()).toEqual(ALL_SETTINGS);
    expect(() => readConfig(Object.fromEntries(examples))).not.toThrow();
  });

  it('.env.example shows each setting that has a default with it', () => {
    const withDefault = examples.filter(([name]) => defaultOf(name) !== undefined);
    const shown = withDefault.map(([name, value]) => [name, parsed(name, value)]);
    expect(shown).toEqual(withDefault.map(([name]) => [name, defaultOf(name)]));
  });

  it('docs/monitoring.md has a section for each alert, to which the alert links', () => {
    const { groups } = parse(textOf('deploy/prometheus/alerts.yml')) as {
      groups: { rules: { alert: string; annotations: { runbook_url: string } }[] }[];
    };
    const rules = groups.flatMap((group) => group.rules);
    const [, alerts] = textOf('docs/monitoring.md').split('\n## Alerts\n');
    const sections = alerts!.split('\n## ')[0]!.match(/(?<=\n### )\w+/g);
    expect(sections?.toSorted()).toEqual(rules.map(({ alert }) => alert).sort());
    for (const { alert, annotations } of rules) {
      expect(annotations.runbook_url).toMatch(
        new RegExp(`/docs/monitoring\\.md#${alert.toLowerCase()}$`),
      );
    }
  });

  it('the changelog has the release that package.json names', () => {
    expect(textOf('CHANGELOG.md')).toMatch(
      new RegExp(`^## \\[${RegExp.escape(version)}\\] - \\d{4}-\\d{2}-\\d{2}$`, 'm'),
    );
  });

  it('docs/api.md has each field of a plant', () => {
    const fields = tableBelow('docs/api.md', 'Request').flatMap(([cell]) => codeIn(cell!));
    expect(fields.sort()).toEqual(PLANT_FIELDS.toSorted());
  });

  it('docs/load-and-export.md has the header of CSV', () => {
    expect(codeIn(proseOf('docs/load-and-export.md'))).toContain(PLANT_FIELDS.join());
  });

  it('docs/api.md has each operation of the OpenAPI document', () => {
    const { paths } = JSON.parse(textOf('openapi.json')) as { paths: Record<string, object> };
    const page = textOf('docs/api.md');
    const missing = Object.entries(paths)
      .flatMap(([path, operations]) =>
        Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
      )
      .filter((operation) => !new RegExp(`${RegExp.escape(operation)}(?![\\w/{])`).test(page));
    expect(missing).toEqual([]);
  });

  it.each(['prometheus/alerts.yml', 'grafana/dashboards/plant-store.json'])(
    'deploy/%s counts the requests of each path of the OpenAPI document',
    (file) => {
      const { paths } = JSON.parse(textOf('openapi.json')) as { paths: object };
      // As Express writes them: /plants/:id.
      const routes = Object.keys(paths).map((path) => path.replaceAll(/\{(\w+)\}/g, ':$1'));
      const read = (file.endsWith('.json') ? JSON.parse : parse) as (text: string) => unknown;
      const text = JSON.stringify(read(textOf(`deploy/${file}`))).replaceAll('\\"', '"');
      const patterns = [...text.matchAll(/\broute=~?"([^"]+)"/g)].map(([, route]) => route!);
      expect(patterns).not.toEqual([]);
      const counted = patterns.map((pattern) => ({
        pattern,
        routes: routes.filter((route) => new RegExp(`^(?:${pattern})$`).test(route)),
      }));
      expect(counted).toEqual(patterns.map((pattern) => ({ pattern, routes })));
    },
  );

  it('docs/settings.md has the unit of each time and of each size', () => {
    const rows = tableBelow('docs/settings.md', 'All settings');
    const unitOf = (name: string) => {
      if (name.endsWith('_MS')) return 'ms';
      return parsed(name, '1kb') === 1024 ? 'bytes' : undefined;
    };
    for (const [cell, , range] of rows) {
      const [name] = codeIn(cell!);
      const unit = /^[\d,]+ to [\d,]+ (ms|bytes)$/.exec(range!)?.[1];
      expect([name, unit]).toEqual([name, unitOf(name!)]);
    }
  });

  it('docs/settings.md has the range of each setting that is a number', () => {
    const rows = tableBelow('docs/settings.md', 'All settings');
    const ofNumbers = rows.filter(([cell]) => {
      const [name] = codeIn(cell!);
      return ['1', '1000'].some((value) => typeof parsed(name!, value) === 'number');
    });
    const shown = rows.filter(
      ([, , range]) => /^\d/.test(range!) && !range!.includes('hexadecimal'),
    );
    expect(shown).toEqual(ofNumbers);
    for (const [variable, , range] of shown) {
      const [name] = codeIn(variable!);
      const [least, most] = /^([\d,]+) to ([\d,]+)/
        .exec(range!)!
        .slice(1)
        .map((text) => Number(text.replaceAll(',', '')));
      const results = [least! - 1, least!, most!, most! + 1].map((value) =>
        parsed(name!, String(value)),
      );
      expect([name, ...results]).toEqual([name, undefined, least, most, undefined]);
    }
  });

  it('docs/clients.md shows each file of examples/ as it is', () => {
    const shown = textOf('docs/clients.md').matchAll(
      /^\[examples\/(\S+)\][^]*?\n```\w+\n([^]*?)```$/gm,
    );
    const files = readdirSync('examples').map(
      (file) => [file, textOf(`examples/${file}`)] as const,
    );
    expect(Object.fromEntries([...shown].map(([, file, code]) => [file!, code!]))).toEqual(
      Object.fromEntries(files),
    );
  });

  const pages = [
    'README.md',
    'CONTRIBUTING.md',
    '.github/SECURITY.md',
    ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.md'))
      .map((file) => `docs/${file}`),
  ];

  const sources = globSync('{src,test,bench,examples}/**/*.ts', { exclude: ['**/node_modules'] });

  it.each(pages)('the TypeScript files that %s names exist', (page) => {
    const named = codeIn(proseOf(page)).filter((text) => /^[\w./-]+\.ts$/.test(text));
    // docs/generated-clients.md tells its reader to write these.
    const ofReaders = ['exact-id.ts', 'client.ts'];
    const missing = named.filter(
      (name) =>
        !ofReaders.includes(name) && !sources.some((file) => `/${file}`.endsWith(`/${name}`)),
    );
    expect(missing).toEqual([]);
  });

  it.each([...pages, 'openapi.json'])('the commands that %s shows exist', async (page) => {
    const text = textOf(page);
    const named = [...text.matchAll(/\bnpm run (?:-s )?([\w:]+)/g)].map(([, name]) => name!);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
    for (const [line, words] of text.matchAll(
      /(?:\.|\/plant-store)\/plant-store((?: [\w./=-]+)+)/g,
    )) {
      const args = words!.trim().split(' ');
      const { exitCode, stdout } = await runInProcess([...args, '--help'], {});
      expect([line, exitCode]).toEqual([line, 0]);
      // Commander shows the help of the group for a command that does not exist.
      const [usage] = stdout.split('\n');
      if (!args[0]!.startsWith('-'))
        expect([line, usage]).not.toEqual([line, expect.stringContaining('[command]')]);
      const options = args.filter((arg) => arg.startsWith('--'));
      expect([line, options.filter((option) => !stdout.includes(option))]).toEqual([line, []]);
    }
  });

  it.each(pages)('the links of %s lead to files and headings that exist', (page) => {
    const text = proseOf(page);
    for (const [, link] of text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)) {
      const [path, anchor] = link!.split('#');
      const file = path === '' ? page : join(dirname(page), path!);
      expect([link, existsSync(file)]).toEqual([link, true]);
      if (anchor !== undefined)
        expect([link, anchorsOf(file)]).toEqual([link, expect.arrayContaining([anchor])]);
    }
  });
});

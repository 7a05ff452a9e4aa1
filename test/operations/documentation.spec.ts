import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { readConfig } from '../../src/config/config.js';
import { runInProcess } from '../setup/service/cli.js';

const textOf = (file: string) => readFileSync(file, 'utf8');

const { version, scripts } = JSON.parse(textOf('package.json')) as {
  version: string;
  scripts: object;
};

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

describe('the documentation is complete', () => {
  it('.env.example has valid values', () => {
    const examples = textOf('.env.example').matchAll(/^#([A-Z][A-Z0-9_]*)=(.*)$/gm);
    const env = Object.fromEntries(Array.from(examples, ([, name, value]) => [name!, value]));
    expect(() => readConfig(env)).not.toThrow();
  });

  it('docs/monitoring.md has a section for each alert, to which the alert links', () => {
    const { groups } = parse(textOf('deploy/prometheus/alerts.yml')) as {
      groups: { rules: { alert: string; annotations: { runbook_url: string } }[] }[];
    };
    const rules = groups.flatMap((group) => group.rules);
    const [, alerts] = textOf('docs/monitoring.md').split('\n## Alerts\n');
    const parts = alerts!.split('\n## ')[0]!.split('\n### ').slice(1);
    const sections = parts.map((part) => /^\w+/.exec(part)![0]);
    // With a query to paste, and a line for the log.
    for (const part of parts) expect(part).toMatch(/\n```promql\n[^]*\n```sh\nlog \| jq /);
    expect(sections.toSorted()).toEqual(rules.map(({ alert }) => alert).sort());
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

  it('docs/clients.md shows or links each file of examples/', () => {
    const named = textOf('docs/clients.md').matchAll(
      /^<!-- (store\S+) -->$|\.\.\/examples\/([^)]+)\)/gm,
    );
    const files = Array.from(named, ([, shown, linked]) => shown ?? linked!);
    expect(files.sort()).toEqual(readdirSync('examples').sort());
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
    // docs/clients.md tells its reader to write these.
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

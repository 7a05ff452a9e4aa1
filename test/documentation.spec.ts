import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { readConfig, SECRET_SETTINGS, settings } from '../src/config/config.js';
import { ERROR_MEANINGS, ErrorCode, statusOf, type ErrorName } from '../src/errors/error-codes.js';

const readme = readFileSync('README.md', 'utf8');

const sectionBelow = (heading: string) => readme.split(`\n## ${heading}\n`)[1]!.split('\n## ')[0]!;

/** The text of the cells, row by row, of the table below a heading. */
function tableBelow(heading: string): string[][] {
  const rows = sectionBelow(heading)
    .split('\n')
    .filter((line) => line.startsWith('|'));
  return rows.slice(2).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

const codeIn = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);

const ALL_SETTINGS = Object.keys(settings.shape).sort();

/** The parsed value of a setting; undefined if it is wrong. */
const parsed = (name: string, value: string | undefined): unknown =>
  settings.shape[name as keyof typeof settings.shape].safeParse(value).data;

const defaultOf = (name: string) => parsed(name, undefined);

/** The settings of .env.example, which are commented out, with their values. */
const examples = [
  ...readFileSync('.env.example', 'utf8').matchAll(/^#([A-Z][A-Z0-9_]*)=(.*)$/gm),
].map(([, name, value]) => [name!, value!] as const);

describe('the documentation is complete', () => {
  it('the table of the README has each setting once', () => {
    const names = tableBelow('Settings').flatMap(([cell]) => codeIn(cell!));
    expect(names.sort()).toEqual(ALL_SETTINGS);
  });

  it('the table of the README has the default of each setting', () => {
    for (const [variables, defaults] of tableBelow('Settings')) {
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

  it('the README and .env.example name the file variable of each secret setting', () => {
    const files = SECRET_SETTINGS.map((name) => `${name}_FILE`).sort();
    const inReadme = codeIn(sectionBelow('Settings')).filter((text) => text.endsWith('_FILE'));
    expect(inReadme.sort()).toEqual([...files, 'PLANT_STORE_TOKEN_FILE'].sort());
    const inExample = readFileSync('.env.example', 'utf8').match(/\b[A-Z][A-Z0-9_]*_FILE\b/g);
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

  it('docs/operations.md has a section for each alert, to which the alert links', () => {
    const { groups } = parse(readFileSync('deploy/prometheus/alerts.yml', 'utf8')) as {
      groups: { rules: { alert: string; annotations: { runbook_url: string } }[] }[];
    };
    const rules = groups.flatMap((group) => group.rules);
    const [, alerts] = readFileSync('docs/operations.md', 'utf8').split('\n## Alerts\n');
    const sections = alerts!.split('\n## ')[0]!.match(/(?<=\n### )\w+(?=\n\n_(Page|Ticket)\._ )/g);
    expect(sections?.toSorted()).toEqual(rules.map(({ alert }) => alert).sort());
    for (const { alert, annotations } of rules) {
      expect(annotations.runbook_url).toMatch(
        new RegExp(`/docs/operations\\.md#${alert.toLowerCase()}$`),
      );
    }
  });

  it('the changelog has the release that package.json names', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    expect(readFileSync('CHANGELOG.md', 'utf8')).toMatch(
      new RegExp(`^## \\[${RegExp.escape(version)}\\] - \\d{4}-\\d{2}-\\d{2}$`, 'm'),
    );
  });

  it('the table of the README has each error once, in the words of the OpenAPI document', () => {
    const names = Object.keys(ErrorCode) as ErrorName[];
    expect(tableBelow('Errors')).toEqual(
      names
        .sort((a, b) => ErrorCode[a] - ErrorCode[b])
        .map((name) => {
          const { when, remedy } = ERROR_MEANINGS[name];
          return [String(ErrorCode[name]), String(statusOf(ErrorCode[name])), when, remedy];
        }),
    );
  });
  it('the README shows each file of examples/ as it is, and none has more than 20 lines', () => {
    const shown = sectionBelow('From your code').matchAll(
      /^\[examples\/(\S+)\][^]*?\n```\w+\n([^]*?)```$/gm,
    );
    const blocks = Object.fromEntries([...shown].map(([, file, code]) => [file!, code!]));
    const files = readdirSync('examples').map((file): [string, string] => [
      file,
      readFileSync(`examples/${file}`, 'utf8'),
    ]);
    expect(blocks).toEqual(Object.fromEntries(files));
    for (const [, code] of files) expect(code.trimEnd().split('\n').length).toBeLessThan(21);
  });
});

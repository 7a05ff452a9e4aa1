import { isIP } from 'node:net';
import { z } from 'zod';
import { problemOfDatabaseUrl, problemOfVariable } from './database-url.js';

const UNITS: Readonly<Record<string, number>> = { '': 1, kb: 1024, mb: 1024 * 1024 };

const NUMBER = new Intl.NumberFormat('en-US');

/** What docs/settings.md says of the values. */
const rangeOf = (min: number, max: number, unit: string): { range: string } => ({
  range: `${NUMBER.format(min)} to ${NUMBER.format(max)} ${unit}`.trimEnd(),
});

export const text = z.string().meta({ range: 'any text' });

export const oneOf = (...words: readonly [string, ...string[]]): z.ZodType<string, string> =>
  z
    .enum(words, `must be one of ${words.join(', ')}`)
    .meta({ range: words.map((word) => `\`${word}\``).join(', ') });

export const sha256 = z
  .string()
  .regex(/^[0-9a-f]{64}$/i, 'must be the SHA-256 of a token, 64 hexadecimal digits')
  .meta({ range: '64 hexadecimal digits' });

export const integer = (min: number, max: number, unit = ''): z.ZodType<number, string> => {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message)
    .meta(rangeOf(min, max, unit));
};

export const bytes = (min: number, max: number): z.ZodType<number, string> => {
  const message = `must be a number of bytes from ${min} to ${max}, such as ${min}, 64kb or 1mb`;
  return z
    .string()
    .regex(/^\d{1,15}(kb|mb)?$/i, message)
    .transform((text) => parseInt(text, 10) * UNITS[text.replace(/\d/g, '').toLowerCase()]!)
    .refine((value) => value >= min && value <= max, message)
    .meta(rangeOf(min, max, 'bytes'));
};

const withoutCredentials = z.string().refine((text) => {
  const url = URL.parse(text);
  return !url?.username && !url?.password;
}, 'must be an address without user and password, which would be logged or published');

export const httpUrl = withoutCredentials
  .refine(
    // The policy of the page for browsers cannot have all characters that a URL may have, such as a comma.
    (text) =>
      /^https?:/i.test(text) && /^(?:[\w.-]+|\[.+\])$/.test(URL.parse(text)?.hostname ?? ''),
    'must be an http:// or https:// address whose host has only letters, digits, hyphens and dots',
  )
  .transform((text) => text.replace(/\/+$/, ''))
  .meta({ range: 'http or https URL' });

/** An attacker that replaces the keys in transit could sign tokens: without TLS, the issuer must be on this machine. */
export function isIssuerUrl(text: string): boolean {
  const url = URL.parse(text);
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(url?.hostname ?? '');
  return url?.protocol === 'https:' || (url?.protocol === 'http:' && isLocal);
}

export const issuerUrl = withoutCredentials
  .refine(isIssuerUrl, 'must be an https:// address')
  .meta({ range: 'https URL' });

/** An app in a web view has an origin with a scheme of its own, such as capacitor://localhost. */
const OTHER_ORIGIN = /^(?!https?:|file:|data:|null)[a-z][a-z0-9+.-]*:\/\/[a-z0-9.-]+(?::\d+)?$/;

/** A list of origins in the form in which browsers send them: any other form would never match. */
export const origins: z.ZodType<readonly string[], string> = z
  .string()
  .transform((text) => text.split(',').map((origin) => origin.trim()))
  .refine(
    (list) =>
      list.every((origin) => {
        if (OTHER_ORIGIN.test(origin)) return true;
        return /^https?:[^*]+$/.test(origin) && URL.parse(origin)?.origin === origin;
      }) ||
      (list.length === 1 && list[0] === '*'),
    'must be *, or origins separated by commas, as browsers send them: in lower case, without a path, a slash at the end or a default port, such as https://garden.example.org',
  )
  .meta({ range: 'origins, separated by commas, or `*`' });

const HOST_NAME = /^[\p{L}\p{N}_-]+(\.[\p{L}\p{N}_-]+)*\.?$/u;

export const host = z
  .string()
  .refine(
    (text) => isIP(text) !== 0 || (text.length <= 253 && HOST_NAME.test(text)),
    'must be a host name or an IP address, such as 127.0.0.1, ::1 or 0.0.0.0',
  )
  .meta({ range: 'host name or IP address' });

/** A text that is not what `problemOf` finds a problem in, which follows the name of the variable in a message. */
const checked = (problemOf: (text: string) => string | undefined): z.ZodType<string, string> =>
  z
    .string()
    .trim()
    .superRefine((text, context) => {
      const problem = problemOf(text);
      if (problem !== undefined) context.addIssue(problem);
    });

export const databaseUrl = checked(problemOfDatabaseUrl).meta({ range: 'postgres URL' });

/** A parameter of `DATABASE_URL` in a variable of its own, under the same rules. */
export const databaseParameter = (name: string): z.ZodType<string, string> =>
  checked((value) => problemOfVariable(name, value)).meta({
    range: `as \`${name}\` in \`DATABASE_URL\``,
  });

/** In a variable of Docker, systemd or a file, nothing replaces these characters: the folder would have this name. */
export const folder = z
  .string()
  .regex(
    /^(?![~$"'])/,
    'must be a path without ~, $ or a quote at its beginning, which only a shell replaces: write the whole path, such as /home/me/plants',
  )
  .meta({ range: 'folder' });

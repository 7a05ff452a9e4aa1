import { isIP } from 'node:net';
import { z } from 'zod';
import { problemOfDatabaseUrl, urlForPg } from './database-url.js';

const UNITS: Readonly<Record<string, number>> = { '': 1, kb: 1024, mb: 1024 * 1024 };

export const integer = (min: number, max: number): z.ZodType<number, string> => {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message);
};

export const bytes = (min: number, max: number): z.ZodType<number, string> => {
  const message = `must be a number of bytes from ${min} to ${max}, such as ${min}, 64kb or 1mb`;
  return z
    .string()
    .regex(/^\d{1,15}(kb|mb)?$/i, message)
    .transform((text) => parseInt(text, 10) * UNITS[text.replace(/\d/g, '').toLowerCase()]!)
    .refine((value) => value >= min && value <= max, message);
};

const WITHOUT_CREDENTIALS =
  'must be an address without user and password, which would be logged or published';

function hasNoCredentials(text: string): boolean {
  if (!URL.canParse(text)) return true;
  const { username, password } = new URL(text);
  return username === '' && password === '';
}

export const httpUrl = z
  .string()
  .refine(
    (text) => /^https?:/i.test(text) && URL.canParse(text),
    'must be an http:// or https:// address',
  )
  .refine(hasNoCredentials, WITHOUT_CREDENTIALS)
  .transform((text) => text.replace(/\/+$/, ''));

/** An attacker that can change the keys on their way could sign tokens, so only this machine may do without TLS. */
export const issuerUrl = z
  .string()
  .refine(isSafeIssuer, 'must be an https:// address')
  .refine(hasNoCredentials, WITHOUT_CREDENTIALS);

function isSafeIssuer(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
  return protocol === 'https:' || (protocol === 'http:' && isLocal);
}

export const host = z
  .string()
  .refine(
    (text) => isIP(text) !== 0 || (text.length <= 253 && HOST_NAME.test(text)),
    'must be a host name or an IP address, such as 127.0.0.1, ::1 or 0.0.0.0',
  );

const HOST_NAME = /^[\p{L}\p{N}_-]+(\.[\p{L}\p{N}_-]+)*\.?$/u;

export const databaseUrl = z
  .string()
  .superRefine((text, context) => {
    const problem = problemOfDatabaseUrl(text);
    if (problem !== undefined) context.addIssue(problem);
  })
  .transform(urlForPg);

const MAX_WORKERS = 512;

export const workers = z
  .string()
  .refine(
    (text) => text === 'auto' || (/^[1-9]\d{0,2}$/.test(text) && Number(text) <= MAX_WORKERS),
    `must be auto, or a whole number from 1 to ${MAX_WORKERS}`,
  )
  .transform((text) => (text === 'auto' ? text : Number(text)));

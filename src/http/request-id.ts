import { randomUUID } from 'node:crypto';

/** What may be taken over: nothing that could break a log line or fill a disk. */
const WELL_FORMED = /^[\w.:-]{1,128}$/;

/** The id of a request: the one its sender or a proxy gave it, or a new one. */
export function requestIdOf(header: string | string[] | undefined): string {
  return typeof header === 'string' && WELL_FORMED.test(header) ? header : randomUUID();
}

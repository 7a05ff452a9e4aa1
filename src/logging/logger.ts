import { pino, type DestinationStream, type Logger } from 'pino';
import { prettyFactory, type MessageFormatFunc, type PrettyOptions } from 'pino-pretty';
import type { Config } from '../config/config.js';
import { LogOutput } from './log-output.js';

type PrettyColors = Parameters<MessageFormatFunc>[3]['colors'];

let output: LogOutput | undefined;

/** Entries that this process could not write to its log. */
export const countLostEntries = (): number => output?.lostEntries ?? 0;

/**
 * Writes JSON to standard output, one log entry a line; on a terminal, text for people.
 *
 * @param worker the number of the worker, for every log entry
 */
export function createLogger({ level }: Config['log'], worker?: number): Logger {
  output ??= new LogOutput();
  const destination = process.stdout.isTTY ? forPeople(output) : output;
  const base = worker === undefined ? null : { worker };
  return pino({ level, base, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}

const PRETTY: PrettyOptions = { singleLine: true, translateTime: 'SYS:HH:MM:ss' };

/** The fields of an entry about a request. */
interface RequestEntry {
  readonly status: number;
  readonly method?: string;
  readonly route: string;
  readonly duration?: number;
  readonly error?: number;
  readonly token?: string;
  readonly worker?: number;
  readonly traceId?: string;
  readonly requestId: string;
  readonly msg: string;
}

const REQUEST_FIELDS: readonly (keyof RequestEntry)[] = [
  'status',
  'method',
  'route',
  'duration',
  'error',
  'token',
  'worker',
  'traceId',
  'requestId',
];

function forPeople(output: LogOutput): DestinationStream {
  const toText = prettyFactory(PRETTY);
  const requestToText = prettyFactory({
    ...PRETTY,
    ignore: ['level', ...REQUEST_FIELDS].join(),
    messageFormat: (log, _key, _level, { colors }) => formatRequest(log as never, colors),
  });
  return {
    write(entry) {
      const log = JSON.parse(entry) as object;
      const isRequest = 'requestId' in log && 'status' in log;
      output.write(isRequest ? requestToText(log) : toText(log));
      output.flush();
    },
  };
}

/** What a person looks for comes first: `400 POST /plants 1.2 ms, error 40005, token greenhouse, …`. */
function formatRequest(
  { status, method, route, duration, msg, error, token, worker, traceId, requestId }: RequestEntry,
  colors: PrettyColors,
): string {
  const first = [colorOf(status, colors)(status), method, route];
  if (duration !== undefined) first.push(`${duration} ms`);
  const rest = Object.entries({ error, token, worker, trace: traceId, request: requestId })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name} ${value}`);
  if (msg !== 'request') rest.unshift(msg);
  return [first.filter((part) => part !== undefined).join(' '), ...rest].join(', ');
}

function colorOf(status: number, { red, yellow, green }: PrettyColors) {
  if (status >= 500) return red;
  return status >= 400 ? yellow : green;
}

import { pino, type DestinationStream, type Logger } from 'pino';
import { prettyFactory, type MessageFormatFunc, type PrettyOptions } from 'pino-pretty';
import type { Config } from '../config/config.js';
import { LogOutput, WORKER_LOG_DESCRIPTOR } from './log-output.js';

type PrettyColors = Parameters<MessageFormatFunc>[3]['colors'];

let output: LogOutput | undefined;

/** Entries that this process could not write to its log. */
export const countLostEntries = (): number => output?.lostEntries ?? 0;

/**
 * Writes JSON to standard output, one log entry a line; on a terminal, text for people.
 *
 * @param worker the number of the worker that this process is, for every log entry
 */
export function createLogger({ level }: Config['log'], worker?: number): Logger {
  output ??= new LogOutput(worker === undefined ? 1 : WORKER_LOG_DESCRIPTOR);
  const { isTTY } = process.stdout;
  return pino(
    {
      level,
      base: worker === undefined ? null : { worker },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: isTTY ? {} : FOR_A_FILE,
    },
    isTTY ? forPeople(output) : output,
  );
}

/** Leaves out the path of a request without a route: anybody may send it, and a file keeps it. A terminal shows it. */
const FOR_A_FILE = { path: () => undefined };

const PRETTY: PrettyOptions = { singleLine: true, translateTime: 'SYS:HH:MM:ss' };

/** The fields of an entry about a request. */
interface RequestEntry {
  readonly time: string;
  readonly status: number;
  readonly method?: string;
  readonly route: string;
  /** Only if the request has no route. */
  readonly path?: string;
  readonly duration?: number;
  readonly error?: number;
  readonly token?: string;
  readonly worker?: number;
  readonly traceId?: string;
  readonly requestId: string;
  readonly msg: string;
}

const REQUEST_FIELDS: readonly (keyof RequestEntry)[] = [
  'time',
  'status',
  'method',
  'route',
  'path',
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

/** The fields that a person looks for come first: `[14:05:09] 400 POST /plants 1.2 ms, error 40005, token greenhouse, …`. */
function formatRequest(entry: RequestEntry, colors: PrettyColors): string {
  const { status, method, route, path, duration, msg } = entry;
  const { error, token, worker, traceId, requestId } = entry;
  const time = new Date(entry.time).toTimeString().slice(0, 'HH:MM:ss'.length);
  const first = [`[${time}]`, colorOf(status, colors)(status), method, path ?? route];
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

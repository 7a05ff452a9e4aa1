import { pino, type DestinationStream, type Logger } from 'pino';
import { prettyFactory, type PrettyOptions } from 'pino-pretty';
import type { Config } from '../config/config.js';
import { LOG_FORMAT } from './log-format.js';
import { LogOutput } from './log-output.js';

let output: LogOutput | undefined;

/** Entries that this process could not write to its log. */
export const countLostEntries = (): number => output?.lostEntries ?? 0;

/** Writes JSON to standard output, one log entry a line; on a terminal, text for people. */
export function createLogger({ level }: Config['log']): Logger {
  output ??= new LogOutput();
  const { isTTY } = process.stdout;
  return pino(
    {
      ...LOG_FORMAT,
      level,
      serializers: isTTY ? {} : FOR_A_FILE,
    },
    isTTY ? forPeople(output) : output,
  );
}

/** Leaves out the path of a request without a route: anybody may send it, and a file keeps it. A terminal shows it. */
const FOR_A_FILE = { path: () => undefined };

type Entry = Readonly<Record<string, string | undefined>>;

/** The fields that a person looks for come first: `[14:05:09] INFO: 400 POST /plants 1.2 ms, error 40005 {"token":…}`. */
const PRETTY: PrettyOptions = {
  singleLine: true,
  translateTime: 'SYS:HH:MM:ss',
  ignore: 'status,method,route,path,duration,error',
  messageFormat: (entry, messageKey) => {
    const { status, method, route, path, duration, error, [messageKey]: message } = entry as Entry;
    // Not an entry about a request.
    if (status === undefined) return message!;
    const parts = [[status, method, path ?? route].filter((part) => part !== undefined).join(' ')];
    if (duration !== undefined) parts[0] += ` ${duration} ms`;
    if (error !== undefined) parts.push(`error ${error}`);
    if (message !== 'request') parts.push(message!);
    return parts.join(', ');
  },
};

function forPeople(output: LogOutput): DestinationStream {
  const toText = prettyFactory(PRETTY);
  return {
    write(entry) {
      output.write(toText(JSON.parse(entry, escapeText)));
      output.flush();
    },
  };
}

/** Clients choose some texts, such as the subject of a JWT. Raw, a sequence of control characters would change the terminal. */
function escapeText(key: string, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  const invisible = key === 'stack' ? /(?!\n)[\p{C}\p{Zl}\p{Zp}]/gu : /[\p{C}\p{Zl}\p{Zp}]/gu;
  return value.replace(invisible, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

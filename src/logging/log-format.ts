// The form of the JSON entries of the service and of its commands.

import { pino, type LoggerOptions } from 'pino';

export const LOG_FORMAT = {
  base: null,
  timestamp: pino.stdTimeFunctions.isoTime,
  // Collectors of logs know the words, and not the numbers of pino.
  formatters: { level: (level) => ({ level }) },
} satisfies LoggerOptions;

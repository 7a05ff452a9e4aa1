import { inspect } from 'node:util';
import { ConfigError } from './config/config-error.js';
import { describeDatabaseError, isDatabaseError } from './database/postgres-errors.js';
import { databaseUnavailable } from './errors/errors.js';
import { ServiceError } from './errors/service-error.js';
import { StartError } from './errors/start-error.js';

const LISTEN_ERRORS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is taken by another program. Set PORT to a free one',
  EACCES: 'may not be opened by this user. Set PORT to one from 1024 up',
  EADDRNOTAVAIL: 'is not on this machine. Set HOST to an address of this machine',
  ENOTFOUND: 'is not on this machine. Set HOST to an address of this machine',
};

/** @returns the message for the operator: one sentence or two, or a stack trace if the fault is in the service */
export function explainStartError(error: unknown): string {
  if (!(error instanceof Error)) return inspect(error);
  // Two classes: ConfigError cannot extend StartError, because config/ imports no other folder of src/.
  if (error instanceof StartError || error instanceof ConfigError) return error.message;
  if (isDatabaseError(error)) return `The database refused: ${describeDatabaseError(error)}.`;
  const { syscall, code, address, hostname, port } = error as NodeJS.ErrnoException & {
    address?: string;
    hostname?: string;
    port?: number;
  };
  if (syscall === 'listen' || syscall === 'getaddrinfo') {
    const hint =
      LISTEN_ERRORS[code ?? ''] ??
      `cannot be opened (${code}). Set HOST to an address of this machine, such as 127.0.0.1`;
    return `The address ${[address ?? hostname, port].filter(Boolean).join(':')} ${hint}.`;
  }
  // The message is for clients, and does not name the cause.
  if (error instanceof ServiceError && error.code === databaseUnavailable.code) {
    return `The database cannot be used: ${describeDatabaseError(error.cause)}.`;
  }
  return error.stack ?? error.message;
}

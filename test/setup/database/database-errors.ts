import { DatabaseError } from 'pg';
import { QueryFailedError } from 'typeorm/error/QueryFailedError.js';

/** An error as pg reads it from a server. */
export function databaseError(code: string, message = 'no'): DatabaseError {
  return Object.assign(new DatabaseError(message, message.length, 'error'), { code });
}

/** The error of TypeORM for a statement that failed. */
export function inTypeOrm(error: Error): QueryFailedError {
  return new QueryFailedError('SELECT 1', [], error);
}

/** An error of Node about a call to the operating system. */
export function systemError(code: string, syscall = 'connect'): NodeJS.ErrnoException {
  return Object.assign(new Error(`${syscall} ${code}`), { code, syscall });
}

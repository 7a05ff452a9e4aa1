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

/** An error of Node, whose message has the code. */
export function systemError(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`connect ${code}`), { code });
}

/** Structured logs. Callers log names and reasons, never whole objects, so that no secrets reach the log. */
import pino from 'pino';

export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Log;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

export function createLog(level: LogLevel, destination?: { write(line: string): void }): Log {
  const options = { level, base: undefined, timestamp: pino.stdTimeFunctions.isoTime };
  return destination ? pino(options, destination) : pino(options, pino.destination(2));
}

export const silentLog: Log = createLog('silent');

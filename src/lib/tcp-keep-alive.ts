/** Lets TCP notice that the other side of a silent connection is gone. */
import type { Duplex } from 'node:stream';

const IDLE_MS = 30_000;

/** Does nothing for a stream that is not a socket. */
export function enableTcpKeepAlive(connection: Duplex): void {
  (connection as { setKeepAlive?(on: boolean, ms: number): void }).setKeepAlive?.(true, IDLE_MS);
}

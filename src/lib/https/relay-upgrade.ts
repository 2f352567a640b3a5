/** Relays an upgraded connection, such as a WebSocket, to a client, without interpreting its protocol. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { UpgradedConnection } from '#lib/https/https-client.ts';
import { enableTcpKeepAlive } from '#lib/tcp-keep-alive.ts';

/** The time for one side to read the last bytes of the other. */
const LINGER_MS = 5000;

/** A response that takes over the connection of the client; `takeOver` writes everything, including the status line. */
export interface RelayedUpgrade {
  readonly status: 101;
  takeOver(client: Duplex, head: Buffer): void;
}

/** Connects both sides: forwards bytes and half-closes, and closes both together. */
export function relayUpgrade({ incoming, connection: server, head: received }: UpgradedConnection): RelayedUpgrade {
  return {
    status: 101,
    takeOver(client, head) {
      client.on('error', () => {});
      client.write(formatHead(incoming));
      if (received.length > 0) client.write(received);
      if (head.length > 0) server.write(head);
      client.pipe(server);
      server.pipe(client);
      client.once('close', () => finish(server));
      server.once('close', () => finish(client));
      // Such a connection may be silent, so only TCP keep-alive detects a dead peer.
      for (const side of [client, server]) enableTcpKeepAlive(side);
      if (client.destroyed) finish(server);
      if (server.destroyed) finish(client);
    },
  };
}

/** Ends a side; written data is still sent for a while. */
function finish(side: Duplex): void {
  if (side.destroyed) return;
  if (side.writableFinished) {
    side.destroy();
    return;
  }
  const timer = setTimeout(() => side.destroy(), LINGER_MS);
  timer.unref();
  side.once('close', () => clearTimeout(timer));
  side.once('finish', () => side.destroy());
  if (!side.writableEnded) side.end();
}

/** Returns status line and headers as received, up to and including the empty line. */
function formatHead({ statusMessage = '', rawHeaders }: IncomingMessage): Buffer {
  const lines = [`HTTP/1.1 101 ${statusMessage === '' ? 'Switching Protocols' : statusMessage}`];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

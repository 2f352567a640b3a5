/** An HTTP server on loopback for tests of WebSockets. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { systemClock } from '#lib/clock.ts';
import { requestWebSocket, type UpgradeRequest } from '#lib/websocket/websocket-handshake.ts';
import type { WebSocketStream } from '#lib/websocket/websocket.ts';

/** Calls `accept` for each upgrade request, until the test ends. Returns the port. */
export async function serveUpgrades(
  t: { after(fn: () => void): void },
  accept: (upgrade: UpgradeRequest) => void,
): Promise<number> {
  const server = createServer();
  const sockets = new Set<Duplex>();
  server.on('upgrade', (request, socket, head) => {
    sockets.add(socket);
    accept({ request, socket, head });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

/** Connects to such a server. Throws unless it accepts. */
export async function connectWebSocket(port: number, protocols: readonly string[] = []): Promise<WebSocketStream> {
  const url = `http://127.0.0.1:${port}/`;
  const { incoming, stream } = await requestWebSocket({ url, protocols, timeoutMs: 10_000, clock: systemClock });
  if (stream === undefined) throw new Error(`the server answered ${incoming.statusCode}`);
  return stream;
}

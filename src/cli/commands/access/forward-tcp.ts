/** Listens on a local TCP port and forwards each connection to a port of a guest. */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { socketStreams, joinStreams } from '#cli/commands/access/join-streams.ts';
import type { ForwardedPort } from '#cli/commands/access/ports.ts';
import { explainFailure } from '#lib/command-line/command-error.ts';
import { renderError } from '#lib/command-line/render-error.ts';
import { errorMessage } from '#lib/error-message.ts';
import type { WebSocketStream } from '#lib/websocket/websocket.ts';

const MAX_CONNECTIONS = 256;

export interface Forwarding {
  /** The local port; chosen by the system if 0 was requested. */
  readonly port: number;
  /** Stops listening and closes all connections. */
  close(): void;
}

export interface ForwardOptions {
  readonly address: string;
  readonly port: ForwardedPort;
  open(): Promise<WebSocketStream>;
  /** Called with the error of one connection. Other connections are not affected. */
  report(line: string): void;
}

/** Rejects with CommandError if it cannot listen. */
export async function forwardTcp({ address, port, open, report }: ForwardOptions): Promise<Forwarding> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
    void forwardConnection(socket, open).catch((error: unknown) => {
      report(connectionError(port, error));
    });
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.on('drop', () => report(connectionError(port, new Error(`there are already ${MAX_CONNECTIONS} connections`))));
  server.listen(port.local, address);
  await explainFailure(`Cannot listen on ${address}:${port.local}: `, once(server, 'listening'));
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Returns the text about one connection that cannot be forwarded. */
export function connectionError({ local }: ForwardedPort, error: unknown): string {
  return renderError(error, `Cannot forward a connection to port ${local}: ${errorMessage(error)}`);
}

async function forwardConnection(socket: Socket, open: () => Promise<WebSocketStream>): Promise<void> {
  try {
    const remote = await open();
    if (socket.destroyed) remote.destroy();
    else await joinStreams(socketStreams(socket), remote);
    // Pending data is still written.
    socket.end();
  } finally {
    if (socket.writableEnded) socket.once('finish', () => socket.destroy());
    else socket.destroy();
  }
}

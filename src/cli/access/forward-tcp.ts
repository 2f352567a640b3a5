/** A local TCP port whose connections each go to a port of a guest. */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { bothEnds, join } from '#cli/access/join.ts';
import type { ForwardedPort } from '#cli/access/ports.ts';
import { CommandError } from '#cli/flags.ts';
import { messageOf } from '#cli/message-of.ts';
import type { WebSocketStream } from '#lib/websocket.ts';

const MAX_CONNECTIONS = 256;

export interface Forwarding {
  /** The local port, which the system may have chosen. */
  readonly port: number;
  /** Ends all connections. */
  close(): void;
}

export interface ForwardOptions {
  readonly address: string;
  readonly port: ForwardedPort;
  open(): Promise<WebSocketStream>;
  /** Gets what went wrong with one connection; the others go on. */
  report(line: string): void;
}

/** Rejects with CommandError where it cannot listen. */
export async function forwardTcp({ address, port, open, report }: ForwardOptions): Promise<Forwarding> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
    void carry(socket, open).catch((error: unknown) => {
      report(`error handling connection for ${port.local}: ${messageOf(error)}`);
    });
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.on('drop', () =>
    report(`error handling connection for ${port.local}: there are already ${MAX_CONNECTIONS} connections`),
  );
  server.listen(port.local, address);
  try {
    await once(server, 'listening');
  } catch (cause) {
    throw new CommandError(`Cannot listen on ${address}:${port.local}: ${messageOf(cause)}`, { cause });
  }
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function carry(socket: Socket, open: () => Promise<WebSocketStream>): Promise<void> {
  try {
    const remote = await open();
    if (socket.destroyed) remote.destroy();
    else await join(bothEnds(socket), remote);
    // What came last is still written.
    socket.end();
  } finally {
    if (socket.writableEnded) socket.once('finish', () => socket.destroy());
    else socket.destroy();
  }
}

/**
 * Relays connections between the QEMUs of two hosts. A QEMU in a network namespace of its own reaches no other host, so
 * both listen and connect on Unix sockets in their directories, and the agents carry the bytes:
 *
 *   source's QEMU ── Unix socket ── agent ── TCP ── agent ── Unix socket ── target's QEMU
 *
 * The bytes are encrypted from QEMU to QEMU; the agents do not see the key in use.
 */
import { once } from 'node:events';
import { lchown, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { openPath } from '#lib/open-path.ts';
import type { ProcessUser } from '#node/hardware/guest-user.ts';
import type { DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';

/** One connection for the memory, or one for each disk. */
const MAX_CONNECTIONS = 64;
const CONNECT_TIMEOUT_MS = 10_000;

export interface Relay {
  /** Accepts no further connections; those that exist continue. */
  stopListening(): void;
  /** Ends all connections, too. */
  close(): void;
}

/** Closes all relays and forgets them. */
export function closeRelays(relays: Relay[]): void {
  for (const relay of relays.splice(0)) relay.close();
}

/** Relays from a TCP port of this host to a socket of QEMU. Rejects if the port is in use. */
export async function relayFromPort(
  { host, port }: { readonly host: string; readonly port: number },
  dir: DomainDir,
  socketName: string,
): Promise<Relay> {
  return await listen(
    (server) => server.listen({ host, port }),
    () => dir.connect(socketName),
  );
}

/** Relays from a socket in QEMU's directory, which only this guest's user can use, to a TCP port of another host. */
export async function relayFromSocket(
  dir: DomainDir,
  { name, user }: { readonly name: string; readonly user: ProcessUser | undefined },
  to: { readonly host: string; readonly port: number },
): Promise<Relay> {
  const path = join(dir.run, name);
  await rm(path, { force: true });
  // The path of a socket is short, but that of the directory may be long. It stays open until the server has removed it.
  const directory = await openPath(dir.run);
  const socket = `/proc/self/fd/${directory.fd}/${name}`;
  const relay = await listen(
    (server) => server.listen({ path: socket }).once('close', () => void directory.close()),
    () => connectTo(to),
  ).catch(async (error: unknown) => {
    await directory.close();
    throw error;
  });
  if (user !== undefined) await lchown(path, user.uid, user.gid);
  return relay;
}

async function listen(start: (server: Server) => void, dial: () => Promise<Socket>): Promise<Relay> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (from) => {
    if (open.size >= MAX_CONNECTIONS) return void from.destroy();
    void relayConnection(from, dial, open);
  });
  start(server);
  await once(server, 'listening');
  // Errors of single connections end those; the migration then fails by itself.
  server.on('error', () => undefined);
  server.unref();
  const stopListening = () => void (server.listening && server.close());
  return {
    stopListening,
    close() {
      stopListening();
      for (const socket of open) socket.destroy();
    },
  };
}

async function relayConnection(from: Socket, dial: () => Promise<Socket>, open: Set<Socket>): Promise<void> {
  track(from, open);
  from.pause();
  let to: Socket;
  try {
    to = await dial();
  } catch {
    from.destroy();
    return;
  }
  track(to, open);
  from.once('close', () => to.destroy());
  to.once('close', () => from.destroy());
  if (from.destroyed) return void to.destroy();
  from.pipe(to);
  to.pipe(from);
}

function track(socket: Socket, open: Set<Socket>): void {
  open.add(socket);
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.once('close', () => open.delete(socket));
}

async function connectTo({ host, port }: { readonly host: string; readonly port: number }): Promise<Socket> {
  const socket = connect({ host, port, allowHalfOpen: true, timeout: CONNECT_TIMEOUT_MS });
  socket.once('timeout', () => socket.destroy(new Error('the other node did not answer')));
  await once(socket, 'connect');
  socket.setTimeout(0);
  return socket;
}

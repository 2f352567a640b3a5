/** The remote end of a connection: its address and certificate, computed once per connection. */
import type { Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { userOfPeerCertificate, type Evidence } from '#engine/auth/authenticate.ts';

type Peer = Evidence['peerCertificate'];

interface RemoteEnd {
  /** The user that the client certificate names. */
  readonly peer: Peer;
  readonly sourceIp: string | undefined;
  /** Distinguishes the connection from all others that are open. */
  readonly id: string;
}

const known = new WeakMap<Http2Session | TLSSocket, RemoteEnd>();

export function remoteEndOf(connection: Http2Session | TLSSocket): RemoteEnd {
  let remoteEnd = known.get(connection);
  if (remoteEnd === undefined) {
    const socket = ('socket' in connection ? connection.socket : connection) as TLSSocket;
    const sourceIp = plainAddress(socket.remoteAddress);
    known.set(connection, (remoteEnd = { peer: peerOf(socket), sourceIp, id: connectionId(socket) }));
  }
  return remoteEnd;
}

/** Dual-stack sockets show IPv4 addresses as IPv4-mapped IPv6 addresses. */
function plainAddress(address: string | undefined): string | undefined {
  return address?.replace(/^::ffff:(?=\d+\.)/, '');
}

/** Returns the share of requests without a user (lib/fair-turns.ts): all from one address have the same. */
export function addressShare(address: string | undefined): string {
  return `address ${plainAddress(address) ?? ''}`;
}

/** Returns the id of a connection, which is the same for its raw socket and its TLS socket. */
export function connectionId({
  remoteAddress = '',
  remotePort = 0,
}: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress} ${remotePort}`;
}

function peerOf(socket: TLSSocket): Peer {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return undefined;
  if (!socket.authorized) return 'untrusted';
  return userOfPeerCertificate(certificate) ?? 'untrusted';
}

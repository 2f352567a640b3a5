/** The remote end of a connection: its address and certificate, computed once per connection. */
import type { Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { userOfPeerCertificate, type Evidence } from '#engine/auth/authenticate.ts';
import { invariant } from '#lib/invariant.ts';

type Peer = Evidence['peerCertificate'];

interface RemoteEnd {
  /** The user that the client certificate names. */
  readonly peer: Peer;
  readonly sourceIp: string | undefined;
  /** The raw socket, which identifies the connection. */
  readonly connection: Socket;
}

const known = new WeakMap<Http2Session | TLSSocket, RemoteEnd>();

export function remoteEndOf(connection: Http2Session | TLSSocket): RemoteEnd {
  let remoteEnd = known.get(connection);
  if (remoteEnd === undefined) {
    const socket = ('socket' in connection ? connection.socket : connection) as TLSSocket;
    const sourceIp = plainAddress(socket.remoteAddress);
    known.set(connection, (remoteEnd = { peer: peerOf(socket), sourceIp, connection: rawSocketOf(socket) }));
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

/** Returns the socket that the listener accepted. Node has no public name for it. */
function rawSocketOf(socket: TLSSocket): Socket {
  const { _parent: raw } = socket as unknown as { _parent?: Socket };
  invariant(raw !== undefined, 'a TLS socket of the listener has a raw socket');
  return raw;
}

function peerOf(socket: TLSSocket): Peer {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return undefined;
  if (!socket.authorized) return 'untrusted';
  return userOfPeerCertificate(certificate) ?? 'untrusted';
}

/** Who the certificate of a connection names: worked out once, then remembered for as long as the connection lives. */
import type { Http2Session } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { userOfPeerCertificate, type Evidence } from '#engine/auth/authenticate.ts';

type Peer = Evidence['peerCertificate'];

const known = new WeakMap<Http2Session | TLSSocket, { readonly peer: Peer }>();

export function connectionUser(connection: Http2Session | TLSSocket): Peer {
  let remembered = known.get(connection);
  if (remembered === undefined) {
    const socket = ('socket' in connection ? connection.socket : connection) as TLSSocket;
    known.set(connection, (remembered = { peer: peerOf(socket) }));
  }
  return remembered.peer;
}

function peerOf(socket: TLSSocket): Peer {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return undefined;
  if (!socket.authorized) return 'untrusted';
  return userOfPeerCertificate(certificate) ?? 'untrusted';
}

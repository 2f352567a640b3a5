/** Who is at the other end of a connection, and where: worked out once, then remembered for as long as it lives. */
import type { Http2Session } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { userOfPeerCertificate, type Evidence } from '#engine/auth/authenticate.ts';

type Peer = Evidence['peerCertificate'];

export interface OtherEnd {
  /** Whom its certificate names. */
  readonly peer: Peer;
  readonly sourceIp: string | undefined;
}

const known = new WeakMap<Http2Session | TLSSocket, OtherEnd>();

export function otherEnd(connection: Http2Session | TLSSocket): OtherEnd {
  let remembered = known.get(connection);
  if (remembered === undefined) {
    const socket = ('socket' in connection ? connection.socket : connection) as TLSSocket;
    // A socket for both families shows addresses of the old one in its own way.
    const sourceIp = socket.remoteAddress?.replace(/^::ffff:(?=\d+\.)/, '');
    known.set(connection, (remembered = { peer: peerOf(socket), sourceIp }));
  }
  return remembered;
}

function peerOf(socket: TLSSocket): Peer {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return undefined;
  if (!socket.authorized) return 'untrusted';
  return userOfPeerCertificate(certificate) ?? 'untrusted';
}

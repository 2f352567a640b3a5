/** Who the certificate of a connection names: worked out once, then remembered for as long as the connection lives. */
import type { TLSSocket } from 'node:tls';
import { userOfPeerCertificate, type Evidence } from '#engine/auth/authenticate.ts';

type Peer = Evidence['peerCertificate'];

const PEER = Symbol('peer');
type Remembering = TLSSocket & { [PEER]?: { value: Peer } };

export function connectionUser(socket: TLSSocket): Peer {
  const remembering = socket as Remembering;
  return (remembering[PEER] ??= { value: peerOf(socket) }).value;
}

function peerOf(socket: TLSSocket): Peer {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return undefined;
  if (!socket.authorized) return 'untrusted';
  return userOfPeerCertificate(certificate) ?? 'untrusted';
}

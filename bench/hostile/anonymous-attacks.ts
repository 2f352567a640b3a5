/** Attacks with connections that have no user. */

export interface AnonymousAttack {
  readonly connections: number;
  /** Undefined: a TCP connection without TLS. */
  readonly protocol: 'http/1.1' | 'h2' | undefined;
  /** Sent first on each connection. */
  readonly first: string;
  readonly body?: Buffer;
}

const BODY = Buffer.alloc(1024 * 1024 - 1, ' ');

export const anonymousAttacks: Readonly<Record<string, AnonymousAttack>> = {
  '1,500 anonymous connections with 1 MiB less one byte of a body each': {
    connections: 1500,
    protocol: 'http/1.1',
    first: `POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\ncontent-length: ${BODY.length + 1}\r\n\r\n`,
    body: BODY,
  },
  '1,000 half heads': { connections: 1000, protocol: 'http/1.1', first: 'GET /api HTTP/1.1\r\nx: y' },
  '9,000 idle sockets': { connections: 9000, protocol: undefined, first: '' },
};

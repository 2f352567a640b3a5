/** Attacks with connections that have no user. */
import { frame, frameTypes, getHeaders, greeting, headersFrame } from '#test/https/raw-tls.ts';

export interface AnonymousAttack {
  readonly connections: number;
  /** Undefined: a TCP connection without TLS. */
  readonly protocol: 'http/1.1' | 'h2' | undefined;
  /** Sent first on each connection. */
  readonly first: string;
  readonly body?: Buffer;
  /** Opens another connection whenever the server closes one. */
  readonly reopens?: boolean;
}

const BODY = Buffer.alloc(1024 * 1024 - 1, ' ');

/** Returns the bytes of an HTTP/2 client that sends many requests at once. */
function manyRequests(count: number, settings: Buffer = Buffer.alloc(0)): Buffer {
  const heads = Array.from({ length: count }, (_, index) => headersFrame(2 * index + 1, getHeaders('/version')));
  return Buffer.concat([greeting, settings, ...heads]);
}

/** INITIAL_WINDOW_SIZE = 0: the client accepts no data. */
const NO_WINDOW = frame(frameTypes.settings, { payload: Buffer.from([0, 4, 0, 0, 0, 0]) });

export const anonymousAttacks: Readonly<Record<string, AnonymousAttack>> = {
  '1,500 anonymous connections with 1 MiB less one byte of a body each': {
    connections: 1500,
    protocol: 'http/1.1',
    first: `POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\ncontent-length: ${BODY.length + 1}\r\n\r\n`,
    body: BODY,
  },
  '1,000 half heads': { connections: 1000, protocol: 'http/1.1', first: 'GET /api HTTP/1.1\r\nx: y' },
  '9,000 idle sockets': { connections: 9000, protocol: undefined, first: '' },
  '6 anonymous connections with 1,000 requests each, again and again': {
    ...{ connections: 6, protocol: 'h2', first: '', body: manyRequests(1000), reopens: true },
  },
  '6 anonymous connections with 16 requests each, again and again': {
    ...{ connections: 6, protocol: 'h2', first: '', body: manyRequests(16), reopens: true },
  },
  '20 anonymous connections with 1,900 responses that nobody reads': {
    ...{ connections: 20, protocol: 'h2', first: '', body: manyRequests(1900, NO_WINDOW) },
  },
  '500 connections with 16 requests each': { connections: 500, protocol: 'h2', first: '', body: manyRequests(16) },
};

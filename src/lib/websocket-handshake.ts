/** How a connection becomes a WebSocket (RFC 6455 section 4), on both sides, as values. Pure. */
import { createHash } from 'node:crypto';

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const VERSION = '13';
/** 16 bytes in base64. */
const KEY = /^[A-Za-z0-9+/]{22}==$/;

type Header = (name: string) => string | undefined;

/** A head that the server sends, or an answer in its place. */
export type ServerHandshake =
  | { readonly head: Buffer; readonly protocol: string | undefined }
  | { readonly refused: { readonly status: 400 | 426; readonly message: string } };

/**
 * The server's side, for a GET with `Upgrade: websocket`. The first of the client's subprotocols that is `known` is
 * agreed on; a client that asks for others only is refused, one that asks for none is served.
 */
export function serverHandshake(header: Header, known: readonly string[]): ServerHandshake {
  const key = header('sec-websocket-key') ?? '';
  if (!KEY.test(key)) return refused(400, 'Sec-WebSocket-Key is missing or is not 16 bytes in base64');
  const version = header('sec-websocket-version');
  if (version !== VERSION) return refused(426, `Sec-WebSocket-Version must be ${VERSION}`);
  const asked = tokens(header('sec-websocket-protocol'));
  const protocol = asked.find((name) => known.includes(name));
  if (asked.length > 0 && protocol === undefined) {
    return refused(400, `none of the subprotocols is known; known are: ${known.join(', ')}`);
  }
  const lines = [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${acceptOf(key)}`,
    ...(protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
  ];
  return { head: Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), protocol };
}

/** The client's headers; `nonce` is 16 bytes that were never used before. */
export function clientHandshake(nonce: Buffer, protocols: readonly string[]): Record<string, string> {
  return {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': VERSION,
    'Sec-WebSocket-Key': nonce.toString('base64'),
    ...(protocols.length === 0 ? {} : { 'Sec-WebSocket-Protocol': protocols.join(', ') }),
  };
}

/** What is wrong with the server's 101; undefined = nothing. */
export function faultOfAnswer(nonce: Buffer, protocols: readonly string[], header: Header): string | undefined {
  if (header('upgrade')?.toLowerCase() !== 'websocket') return 'the server changed to another protocol';
  if (header('sec-websocket-accept') !== acceptOf(nonce.toString('base64'))) return 'the server took no WebSocket key';
  const protocol = header('sec-websocket-protocol');
  if (protocol !== undefined && !protocols.includes(protocol)) return `the server chose subprotocol ${protocol}`;
  return undefined;
}

function acceptOf(key: string): string {
  return createHash('sha1')
    .update(key + GUID)
    .digest('base64');
}

function tokens(list: string | undefined): string[] {
  return (list ?? '')
    .split(',')
    .map((token) => token.trim())
    .filter((token) => token !== '');
}

function refused(status: 400 | 426, message: string): ServerHandshake {
  return { refused: { status, message } };
}

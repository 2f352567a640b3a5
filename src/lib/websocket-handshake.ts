/** The handshake that opens a WebSocket (RFC 6455 section 4), for client and server, as values. Pure. */
import { createHash } from 'node:crypto';

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const VERSION = '13';
/** The base64 form of 16 bytes. */
const KEY = /^[A-Za-z0-9+/]{22}==$/;

type Header = (name: string) => string | undefined;

/** The response head that the server sends, or the refusal to send instead. */
export type ServerHandshake =
  | { readonly head: Buffer; readonly protocol: string | undefined }
  | { readonly refusal: { readonly status: 400 | 426; readonly message: string } };

/**
 * Answers a GET with `Upgrade: websocket`. Selects the first of the client's subprotocols that is `known`. Refuses a
 * client that requests only unknown subprotocols; accepts one that requests none.
 */
export function serverHandshake(header: Header, known: readonly string[]): ServerHandshake {
  const key = header('sec-websocket-key') ?? '';
  if (!KEY.test(key)) return refuse(400, 'Sec-WebSocket-Key is missing or is not 16 bytes in base64');
  const version = header('sec-websocket-version');
  if (version !== VERSION) return refuse(426, `Sec-WebSocket-Version must be ${VERSION}`);
  const requested = parseTokens(header('sec-websocket-protocol'));
  const protocol = requested.find((name) => known.includes(name));
  if (requested.length > 0 && protocol === undefined) {
    return refuse(400, `none of the requested subprotocols is known; known are: ${known.join(', ')}`);
  }
  const lines = [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${acceptKey(key)}`,
    ...(protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
  ];
  return { head: Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), protocol };
}

/** Returns the client's request headers. `nonce` is 16 random bytes. */
export function clientHandshake(nonce: Buffer, protocols: readonly string[]): Record<string, string> {
  return {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': VERSION,
    'Sec-WebSocket-Key': nonce.toString('base64'),
    ...(protocols.length === 0 ? {} : { 'Sec-WebSocket-Protocol': protocols.join(', ') }),
  };
}

/** Returns why the server's 101 response is invalid, or undefined if it is valid. */
export function checkServerResponse(nonce: Buffer, protocols: readonly string[], header: Header): string | undefined {
  if (header('upgrade')?.toLowerCase() !== 'websocket') return 'the server switched to another protocol';
  if (header('sec-websocket-accept') !== acceptKey(nonce.toString('base64'))) {
    return 'the server answered with a wrong Sec-WebSocket-Accept';
  }
  const protocol = header('sec-websocket-protocol');
  if (protocol !== undefined && !protocols.includes(protocol)) {
    return `the server chose subprotocol ${protocol}, which was not requested`;
  }
  return undefined;
}

function acceptKey(key: string): string {
  return createHash('sha1')
    .update(key + GUID)
    .digest('base64');
}

function parseTokens(list: string | undefined): string[] {
  return (list ?? '')
    .split(',')
    .map((token) => token.trim())
    .filter((token) => token !== '');
}

function refuse(status: 400 | 426, message: string): ServerHandshake {
  return { refusal: { status, message } };
}

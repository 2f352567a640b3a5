/** Raw bytes on a TLS connection, for requests that no client library would send. */
import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';
import type { ClusterAccess } from '#client/kubeconfig.ts';

export async function openTls(access: ClusterAccess, protocol: 'h2' | 'http/1.1'): Promise<TLSSocket> {
  const { hostname: host, port } = new URL(access.server);
  const { certificateAuthority: ca, clientCertificate: cert, clientKey: key } = access;
  const socket = connect({ host, port: Number(port), ca, cert, key, ALPNProtocols: [protocol] });
  await once(socket, 'secureConnect');
  // Tests check the effect on the server, not on this socket.
  socket.on('error', () => {});
  return socket;
}

/** Returns everything that arrives until the server closes. */
export async function untilClosed(socket: TLSSocket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await new Promise((resolve) => socket.once('close', resolve));
  return Buffer.concat(chunks).toString('latin1');
}

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const END_STREAM = 0x1;
const END_HEADERS = 0x4;

export const frameTypes = { data: 0, headers: 1, rstStream: 3, settings: 4, ping: 6, windowUpdate: 8 } as const;

export function frame(type: number, { flags = 0, stream = 0, payload = Buffer.alloc(0) } = {}): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** The first bytes of a client. */
export const greeting = Buffer.concat([PREFACE, frame(frameTypes.settings)]);

/** Returns a frame with uncompressed headers: literals that are not indexed. */
export function headersFrame(stream: number, headers: Readonly<Record<string, string>>, { open = false } = {}): Buffer {
  const payload = Object.entries(headers).flatMap(([name, value]) => [Buffer.from([0]), literal(name), literal(value)]);
  const flags = END_HEADERS | (open ? 0 : END_STREAM);
  return frame(frameTypes.headers, { flags, stream, payload: Buffer.concat(payload) });
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text);
  // Lengths from 127 on continue in further bytes of seven bits each.
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) + 128);
  length.push(rest);
  return Buffer.concat([Buffer.from(length), bytes]);
}

export function getHeaders(path: string): Record<string, string> {
  return { ':method': 'GET', ':scheme': 'https', ':authority': 'localhost', ':path': path };
}

/** An aggregated API over real HTTPS whose answers a test sets, and which records the requests. */
import { createServer, type Server } from 'node:https';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { makeCertificate, newKeyPair, privateKeyPem, type KeyPair } from '#lib/pki/x509.ts';
import { systemClock } from '#lib/clock.ts';
import type { Loose } from '#test/support/test-api.ts';

const HOUR_MS = 60 * 60 * 1000;

export interface RecordedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** The name in the client's certificate, if the expected CA has signed it. */
  readonly peer: string | undefined;
}

export type Respond = (request: IncomingMessage, response: ServerResponse) => void;
export type HandleUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

export interface ExtensionServer {
  readonly port: number;
  /** The CA as base64 of PEM, the form of an APIService. */
  readonly caBundle: string;
  readonly requests: RecordedRequest[];
  /** The number of TCP connections so far. */
  readonly connections: number;
  /** Sets the response of a path, for any query. */
  on(path: string, respond: Respond): void;
  onUpgrade(path: string, take: HandleUpgrade): void;
  /** Closes idle connections, as a server that restarts does. */
  dropIdle(): void;
  stop(): Promise<void>;
}

export interface ExtensionServerOptions {
  /** The hosts of its certificate. */
  readonly hosts: readonly string[];
  /** The CA of the client certificates that it accepts, as PEM. */
  readonly clientCa: string;
  /** The issuer of its certificate; by default a new CA. */
  readonly issuer?: Issuer;
}

export async function startExtensionServer(options: ExtensionServerOptions): Promise<ExtensionServer> {
  const { hosts, clientCa, issuer = createIssuer('extension-ca') } = options;
  const paths = new Map<string, Respond>();
  const upgrades = new Map<string, HandleUpgrade>();
  const seen: RecordedRequest[] = [];
  let connections = 0;
  const recordRequest = (request: IncomingMessage) => {
    const socket = request.socket as TLSSocket;
    const peer = socket.authorized ? (socket.getPeerCertificate().subject.CN as string) : undefined;
    seen.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, peer });
    return request.url?.split('?', 1)[0] ?? '';
  };
  const tls = { ...issueServerCertificate(issuer, hosts), ca: clientCa, requestCert: true, rejectUnauthorized: false };
  const server = createServer(tls, (request, response) => {
    const respond = paths.get(recordRequest(request));
    if (respond === undefined) response.writeHead(404).end('404 page not found\n');
    else respond(request, response);
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => {});
    const take = upgrades.get(recordRequest(request));
    if (take === undefined) socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n');
    else take(request, socket, head);
  });
  server.on('connection', () => connections++);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    caBundle: Buffer.from(issuer.pem).toString('base64'),
    requests: seen,
    get connections() {
      return connections;
    },
    on: (path, respond) => void paths.set(path, respond),
    onUpgrade: (path, take) => void upgrades.set(path, take),
    dropIdle: () => server.closeIdleConnections(),
    stop: () => stopServer(server),
  };
}

export async function stopServer(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
}

export function sendJson(response: ServerResponse, value: Loose, contentType = 'application/json'): void {
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(200, { 'content-type': contentType, 'content-length': body.length }).end(body);
}

/** Upgrades the connection and sends all bytes back. */
export const echo: HandleUpgrade = (request, socket, head) => {
  const protocol = request.headers['sec-websocket-protocol'];
  const chosen = protocol === undefined ? '' : `Sec-WebSocket-Protocol: ${protocol}\r\n`;
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${chosen}\r\n`);
  socket.write(head);
  socket.pipe(socket);
};

export interface Issuer {
  readonly pem: string;
  readonly keys: KeyPair;
  readonly name: string;
}

export function createIssuer(name: string): Issuer {
  const keys = newKeyPair();
  const subject = { commonName: name };
  const pem = makeCertificate({
    ...certificateFields({ keys, name }),
    subject,
    publicKey: keys.publicKey,
    purpose: AUTHORITY,
  });
  return { pem, keys, name };
}

const AUTHORITY = { kind: 'authority' } as const;

export function issueServerCertificate(
  issuer: Omit<Issuer, 'pem'>,
  hosts: readonly string[],
): { cert: string; key: string } {
  const { publicKey, privateKey } = newKeyPair();
  const purpose = { kind: 'server', hosts } as const;
  const cert = makeCertificate({ ...certificateFields(issuer), subject: { commonName: 'server' }, publicKey, purpose });
  return { cert, key: privateKeyPem(privateKey) };
}

function certificateFields({ keys, name }: Omit<Issuer, 'pem'>) {
  const now = systemClock.now();
  return {
    issuer: { commonName: name },
    issuerKey: keys.privateKey,
    issuerPublicKey: keys.publicKey,
    notBeforeMs: now - HOUR_MS,
    notAfterMs: now + HOUR_MS,
  };
}

/** An aggregated API over real HTTPS that answers as a test tells it, and notes who asked for what. */
import { createServer, type Server } from 'node:https';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { makeCertificate, newKeyPair, privateKeyPem, type KeyPair } from '#lib/pki/x509.ts';
import { systemClock } from '#lib/clock.ts';
import type { Loose } from '#test/support/test-api.ts';

const HOUR_MS = 60 * 60 * 1000;

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** The name in the client's certificate, where it is one of the expected CA. */
  readonly peer: string | undefined;
}

export type Respond = (request: IncomingMessage, response: ServerResponse) => void;
export type TakeUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

export interface ExtensionServer {
  readonly port: number;
  /** Base64 of PEM, as an APIService wants it. */
  readonly caBundle: string;
  readonly seen: SeenRequest[];
  /** How many TCP connections were made. */
  readonly connections: number;
  /** What a path answers, whatever its query. */
  on(path: string, respond: Respond): void;
  onUpgrade(path: string, take: TakeUpgrade): void;
  /** Closes connections that wait for their next request, as a server that restarts does. */
  dropIdle(): void;
  stop(): Promise<void>;
}

export interface ExtensionServerOptions {
  /** What its certificate is for. */
  readonly hosts: readonly string[];
  /** Whose client certificates it knows, as PEM. */
  readonly clientCa: string;
  /** Who signs its certificate; otherwise a CA of its own. */
  readonly issuer?: Issuer;
}

export async function startExtensionServer(options: ExtensionServerOptions): Promise<ExtensionServer> {
  const { hosts, clientCa, issuer = newIssuer('extension-ca') } = options;
  const paths = new Map<string, Respond>();
  const upgrades = new Map<string, TakeUpgrade>();
  const seen: SeenRequest[] = [];
  let connections = 0;
  const note = (request: IncomingMessage) => {
    const socket = request.socket as TLSSocket;
    const peer = socket.authorized ? (socket.getPeerCertificate().subject.CN as string) : undefined;
    seen.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, peer });
    return request.url?.split('?', 1)[0] ?? '';
  };
  const tls = { ...issueServer(issuer, hosts), ca: clientCa, requestCert: true, rejectUnauthorized: false };
  const server = createServer(tls, (request, response) => {
    const respond = paths.get(note(request));
    if (respond === undefined) response.writeHead(404).end('404 page not found\n');
    else respond(request, response);
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => {});
    const take = upgrades.get(note(request));
    if (take === undefined) socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n');
    else take(request, socket, head);
  });
  server.on('connection', () => connections++);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    caBundle: Buffer.from(issuer.pem).toString('base64'),
    seen,
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

/** Changes the connection to raw bytes that come back as they were sent. */
export const echo: TakeUpgrade = (request, socket, head) => {
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

export function newIssuer(name: string): Issuer {
  const keys = newKeyPair();
  const subject = { commonName: name };
  const pem = makeCertificate({ ...signedBy({ keys, name }), subject, publicKey: keys.publicKey, purpose: AUTHORITY });
  return { pem, keys, name };
}

const AUTHORITY = { kind: 'authority' } as const;

export function issueServer(issuer: Omit<Issuer, 'pem'>, hosts: readonly string[]): { cert: string; key: string } {
  const { publicKey, privateKey } = newKeyPair();
  const purpose = { kind: 'server', hosts } as const;
  const cert = makeCertificate({ ...signedBy(issuer), subject: { commonName: 'server' }, publicKey, purpose });
  return { cert, key: privateKeyPem(privateKey) };
}

function signedBy({ keys, name }: Omit<Issuer, 'pem'>) {
  const now = systemClock.now();
  return {
    issuer: { commonName: name },
    issuerKey: keys.privateKey,
    issuerPublicKey: keys.publicKey,
    notBeforeMs: now - HOUR_MS,
    notAfterMs: now + HOUR_MS,
  };
}

/** A webhook over real HTTPS that answers as a test tells it: by the path that it is called under. */
import { createServer, type Server } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { makeCertificate, newKeyPair, privateKeyPem } from '#lib/pki/x509.ts';
import { systemClock } from '#lib/clock.ts';
import type { Loose } from '#test/support/test-api.ts';

const HOUR_MS = 60 * 60 * 1000;

/** What to answer to an AdmissionReview: fields of its response, over `{ uid, allowed: true }`. */
export type Responder = (request: Loose) => Loose;

/** Anything may be done to the exchange; a webhook that never answers does nothing. */
export type Misbehaviour = (response: ServerResponse, socket: Socket, review: Loose) => void;

export interface WebhookServer {
  readonly url: string;
  readonly port: number;
  /** Base64 of PEM, as clientConfig wants it. */
  readonly caBundle: string;
  /** AdmissionReviews in the order in which they came, with the path that was called. */
  readonly seen: { path: string; review: Loose }[];
  /** How many TCP connections were made. */
  readonly connections: number;
  answer(path: string, responder: Responder): void;
  misbehave(path: string, misbehaviour: Misbehaviour): void;
  /** Resolves once that many reviews came. */
  got(count: number): Promise<void>;
  /** Closes connections that wait for their next request, as a server that restarts does. */
  dropIdle(): void;
  stop(): Promise<void>;
}

export interface WebhookServerOptions {
  /** What its certificate is for. */
  readonly hosts?: readonly string[];
}

export async function startWebhookServer({
  hosts = ['127.0.0.1', 'hooks.golden.svc'],
}: WebhookServerOptions = {}): Promise<WebhookServer> {
  const { caPem, certPem, keyPem } = issue(hosts);
  const paths = new Map<string, (response: ServerResponse, socket: Socket, review: Loose) => void>();
  const seen: { path: string; review: Loose }[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  let connections = 0;

  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const review: Loose = JSON.parse(await readBody(request));
    const path = request.url ?? '';
    seen.push({ path, review });
    for (const waiter of waiting) if (seen.length >= waiter.count) waiter.resolve();
    const behave = paths.get(path.split('?', 1)[0] ?? '');
    if (behave === undefined) response.writeHead(404).end();
    else behave(response, request.socket, review);
  };
  const server = createServer({ cert: certPem, key: keyPem }, (request, response) => {
    // A test's own mistake shows as a connection that ends.
    serve(request, response).catch(() => response.destroy());
  });
  server.on('connection', () => connections++);
  await listen(server);
  const { port } = server.address() as AddressInfo;

  return {
    url: `https://127.0.0.1:${port}`,
    port,
    caBundle: Buffer.from(caPem).toString('base64'),
    seen,
    get connections() {
      return connections;
    },
    answer(path, responder) {
      paths.set(path, (response, _socket, review) => {
        sendJson(response, reviewAnswer(review, responder(review.request)));
      });
    },
    misbehave: (path, misbehaviour) => void paths.set(path, misbehaviour),
    async got(count) {
      if (seen.length < count) await new Promise<void>((resolve) => waiting.push({ count, resolve }));
    },
    dropIdle: () => server.closeIdleConnections(),
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The AdmissionReview that says this about that one. */
export function reviewAnswer(review: Loose, response: Loose): Loose {
  return {
    apiVersion: review.apiVersion,
    kind: 'AdmissionReview',
    response: { uid: review.request.uid, allowed: true, ...response },
  };
}

export function jsonPatch(...operations: Loose[]): Loose {
  return { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(operations)).toString('base64') };
}

export function sendJson(response: ServerResponse, value: Loose): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

function listen(server: Server): Promise<void> {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
}

function issue(hosts: readonly string[]): { caPem: string; certPem: string; keyPem: string } {
  const [authority, own] = [newKeyPair(), newKeyPair()];
  const issuer = { commonName: 'webhook-ca' };
  const now = systemClock.now();
  const signed = {
    issuer,
    issuerKey: authority.privateKey,
    issuerPublicKey: authority.publicKey,
    notBeforeMs: now - HOUR_MS,
    notAfterMs: now + HOUR_MS,
  };
  const { publicKey } = authority;
  const caPem = makeCertificate({ ...signed, subject: issuer, publicKey, purpose: { kind: 'authority' } });
  const certPem = makeCertificate({
    ...signed,
    subject: { commonName: 'webhook' },
    publicKey: own.publicKey,
    purpose: { kind: 'server', hosts },
  });
  return { caPem, certPem, keyPem: privateKeyPem(own.privateKey) };
}

/** A webhook over real HTTPS whose answers a test sets for each path. */
import { createServer, type Server } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { makeCertificate, newKeyPair, privateKeyPem } from '#lib/pki/x509.ts';
import { systemClock } from '#lib/clock.ts';
import type { Loose } from '#test/support/test-api.ts';

const HOUR_MS = 60 * 60 * 1000;

/** Returns the fields of the response to an AdmissionReview, which are added to `{ uid, allowed: true }`. */
export type Responder = (request: Loose) => Loose;

/** Handles the exchange in any way. A function that does nothing simulates a webhook that never answers. */
export type Misbehaviour = (response: ServerResponse, socket: Socket, review: Loose) => void;

export interface WebhookServer {
  readonly url: string;
  readonly port: number;
  /** The CA as base64 of PEM, the form of clientConfig. */
  readonly caBundle: string;
  /** The AdmissionReviews in the order of their arrival, each with the path that was called. */
  readonly reviews: { path: string; review: Loose }[];
  /** The number of TCP connections so far. */
  readonly connections: number;
  answer(path: string, responder: Responder): void;
  misbehave(path: string, misbehaviour: Misbehaviour): void;
  /** Resolves once this many reviews have arrived. */
  awaitReviews(count: number): Promise<void>;
  /** Closes idle connections, as a server that restarts does. */
  dropIdle(): void;
  stop(): Promise<void>;
}

export interface WebhookServerOptions {
  /** The hosts of its certificate. */
  readonly hosts?: readonly string[];
}

export async function startWebhookServer({
  hosts = ['127.0.0.1', 'hooks.golden.svc'],
}: WebhookServerOptions = {}): Promise<WebhookServer> {
  const { caPem, certPem, keyPem } = issueCertificates(hosts);
  const paths = new Map<string, (response: ServerResponse, socket: Socket, review: Loose) => void>();
  const seen: { path: string; review: Loose }[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  let connections = 0;

  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const review: Loose = JSON.parse(await readBody(request));
    const path = request.url ?? '';
    seen.push({ path, review });
    for (const waiter of waiting) if (seen.length >= waiter.count) waiter.resolve();
    const handle = paths.get(path.split('?', 1)[0] ?? '');
    if (handle === undefined) response.writeHead(404).end();
    else handle(response, request.socket, review);
  };
  const server = createServer({ cert: certPem, key: keyPem }, (request, response) => {
    // An error in a test's handler closes the connection, which fails the test.
    serve(request, response).catch(() => response.destroy());
  });
  server.on('connection', () => connections++);
  await listen(server);
  const { port } = server.address() as AddressInfo;

  return {
    url: `https://127.0.0.1:${port}`,
    port,
    caBundle: Buffer.from(caPem).toString('base64'),
    reviews: seen,
    get connections() {
      return connections;
    },
    answer(path, responder) {
      paths.set(path, (response, _socket, review) => {
        sendJson(response, buildReviewAnswer(review, responder(review.request)));
      });
    },
    misbehave: (path, misbehaviour) => void paths.set(path, misbehaviour),
    async awaitReviews(count) {
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

/** Builds the AdmissionReview that answers the given one. */
export function buildReviewAnswer(review: Loose, response: Loose): Loose {
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

function issueCertificates(hosts: readonly string[]): { caPem: string; certPem: string; keyPem: string } {
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

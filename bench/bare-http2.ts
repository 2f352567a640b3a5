/**
 * The floor for reads and watches: node:http2 alone, with the same bytes and the same TLS. It reads just enough of the
 * path to know what is requested, checks nothing and stores nothing. A POST is forwarded to all watches.
 */
import { constants } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { serveJobs } from './jobs.ts';

export type BareHttp2Job =
  | { readonly kind: 'start'; readonly cert: string; readonly key: string; readonly ca: string }
  /** Files with the responses of the engine. */
  | { readonly kind: 'bodies'; readonly object: string; readonly list: string };

const HEAD = Buffer.from('{"type":"ADDED","object":');
const TAIL = Buffer.from('}\n');
const PAGE = Buffer.from('{"metadata":{"resourceVersion":"1"},"items":[]}');
const OK = { ':status': 200, 'content-type': 'application/json' };
const CREATED = { ':status': 201, 'content-type': 'application/json' };
const RECEIVED = { POST: CREATED, PATCH: OK };

let object: Buffer = PAGE;
let list: Buffer = PAGE;
const watchers = new Set<ServerHttp2Stream>();

serveJobs(async (job: BareHttp2Job) => {
  if (job.kind === 'start') return start(job);
  object = await readFile(job.object);
  list = await readFile(job.list);
});

function start({ cert, key, ca }: Extract<BareHttp2Job, { kind: 'start' }>): Promise<number> {
  const secureOptions = constants.SSL_OP_NO_TICKET;
  const server = createSecureServer({ cert, key, ca, requestCert: true, rejectUnauthorized: false, secureOptions });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    const method = headers[':method'];
    if (method === 'POST' || method === 'PATCH') receive(stream, method);
    else respond(stream, headers[':path'] ?? '');
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

function respond(stream: ServerHttp2Stream, path: string): void {
  stream.respond(OK);
  if (path.includes('watch=true')) {
    watchers.add(stream);
    stream.once('close', () => watchers.delete(stream));
  } else if (path.endsWith('limit=1')) {
    stream.end(PAGE);
  } else {
    stream.end(path.endsWith('/parcels') ? list : object);
  }
}

function receive(stream: ServerHttp2Stream, method: keyof typeof RECEIVED): void {
  const chunks: Buffer[] = [HEAD];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.on('end', () => {
    stream.respond(RECEIVED[method]);
    stream.end(object);
    if (watchers.size === 0) return;
    const frame = Buffer.concat([...chunks, TAIL]);
    for (const watcher of watchers) watcher.write(frame);
  });
}

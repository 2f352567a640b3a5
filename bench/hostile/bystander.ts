/**
 * A user who does nothing unusual, in its own process: a GET and the renewal of a lease in turn, on one connection, as a
 * node agent does, and from time to time a GET on a new connection, as kubectl does. Reports their latencies.
 */
import { connect, type ClientHttp2Session } from 'node:http2';
import { serveJobs } from '../jobs.ts';
import { pause } from '../pause.ts';
import type { Target } from '../raw-h2.ts';
import { percentile } from '../statistics.ts';

export type BystanderJob =
  | { readonly kind: 'start'; readonly target: Target; readonly getPath: string; readonly leasePath: string }
  /** Begins to measure; the job ends at once. */
  | { readonly kind: 'begin' }
  /** Ends the measurement and returns its figures. */
  | { readonly kind: 'end' };

export interface Latency {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

export interface BystanderFigures {
  readonly get: Latency;
  readonly heartbeat: Latency;
  /** A GET on a new connection, with its handshake. */
  readonly connect: Latency;
}

/** The pause between two requests. */
const PAUSE_MS = 3;
/** One of this many requests is on a new connection. */
const PER_CONNECT = 8;

let session: ClientHttp2Session | undefined;
let target: Target;
let paths = { get: '', lease: '' };
let running:
  | {
      isOver: boolean;
      readonly gets: number[];
      readonly heartbeats: number[];
      readonly connects: number[];
      done: Promise<void>;
    }
  | undefined;

function open(): ClientHttp2Session {
  const { host, port, ca, cert, key } = target;
  return connect(`https://${host}:${port}`, { ca, cert, key });
}

function send(method: string, path: string, body?: string, on = session!): Promise<void> {
  const headers = { ':method': method, ':path': path, 'content-type': 'application/merge-patch+json' };
  const stream = on.request(headers, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  return new Promise((resolve, reject) => {
    stream.on('response', ({ ':status': status }) => {
      if (status !== 200) reject(new Error(`${method} ${path}: ${status}`));
    });
    stream.on('error', reject).on('end', resolve).resume();
  });
}

async function timed(work: () => Promise<void>): Promise<number> {
  const before = performance.now();
  await work();
  return performance.now() - before;
}

async function measure(run: NonNullable<typeof running>): Promise<void> {
  for (let beat = 0; !run.isOver; beat++) {
    run.gets.push(await timed(() => send('GET', paths.get)));
    const renewal = JSON.stringify({ spec: { leaseTransitions: beat } });
    run.heartbeats.push(await timed(() => send('PATCH', paths.lease, renewal)));
    if (beat % PER_CONNECT === 0) run.connects.push(await timed(getOnNewConnection));
    await pause(PAUSE_MS);
  }
}

/** Fails if the server closes the connection. */
async function getOnNewConnection(): Promise<void> {
  const own = open();
  const failed = new Promise<never>((_, reject) => own.once('error', reject));
  await Promise.race([send('GET', paths.get, undefined, own), failed]);
  own.destroy();
}

function latencyOf(values: number[]): Latency {
  const [p50Ms, p99Ms, maxMs] = [0.5, 0.99, 1].map((share) => percentile(values, share)) as [number, number, number];
  return { count: values.length, p50Ms, p99Ms, maxMs };
}

serveJobs(async (job: BystanderJob) => {
  switch (job.kind) {
    case 'start': {
      target = job.target;
      session = open();
      paths = { get: job.getPath, lease: job.leasePath };
      return;
    }
    case 'begin': {
      const run = { isOver: false, gets: [], heartbeats: [], connects: [], done: Promise.resolve() };
      running = run;
      running.done = measure(run);
      running.done.catch(() => {});
      return;
    }
    case 'end': {
      running!.isOver = true;
      await running!.done;
      const { gets, heartbeats, connects } = running!;
      return { get: latencyOf(gets), heartbeat: latencyOf(heartbeats), connect: latencyOf(connects) };
    }
  }
});

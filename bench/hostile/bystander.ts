/**
 * A user who does nothing unusual, in its own process: a GET and the renewal of a lease in turn, on one connection, as a
 * node agent does. Reports their latencies.
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
}

/** The pause between two requests. */
const PAUSE_MS = 3;

let session: ClientHttp2Session | undefined;
let paths = { get: '', lease: '' };
let running:
  | { isOver: boolean; readonly gets: number[]; readonly heartbeats: number[]; done: Promise<void> }
  | undefined;

function send(method: string, path: string, body?: string): Promise<void> {
  const headers = { ':method': method, ':path': path, 'content-type': 'application/merge-patch+json' };
  const stream = session!.request(headers, { endStream: body === undefined });
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
    await pause(PAUSE_MS);
  }
}

function latencyOf(values: number[]): Latency {
  const [p50Ms, p99Ms, maxMs] = [0.5, 0.99, 1].map((share) => percentile(values, share)) as [number, number, number];
  return { count: values.length, p50Ms, p99Ms, maxMs };
}

serveJobs(async (job: BystanderJob) => {
  switch (job.kind) {
    case 'start': {
      const { host, port, ca, cert, key } = job.target;
      session = connect(`https://${host}:${port}`, { ca, cert, key });
      paths = { get: job.getPath, lease: job.leasePath };
      return;
    }
    case 'begin': {
      const run = { isOver: false, gets: [], heartbeats: [], done: Promise.resolve() };
      running = run;
      running.done = measure(run);
      running.done.catch(() => {});
      return;
    }
    case 'end': {
      running!.isOver = true;
      await running!.done;
      return { get: latencyOf(running!.gets), heartbeat: latencyOf(running!.heartbeats) };
    }
  }
});

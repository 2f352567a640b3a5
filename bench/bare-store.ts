/** The floor for writes: the durable store alone, with prepared bytes. */
import { openSqliteStore } from '#engine/store/open-store.ts';
import type { Store } from '#engine/store/store.ts';
import { serveJobs } from './jobs.ts';
import { pause } from './pause.ts';
import { percentile } from './statistics.ts';

export type BareStoreJob =
  | { readonly kind: 'open'; readonly file: string }
  | {
      readonly kind: 'write';
      readonly verb: 'create' | 'patch';
      readonly writers: number;
      readonly objectBytes: number;
      readonly warmMs: number;
      readonly measureMs: number;
    };
type WriteJob = Extract<BareStoreJob, { kind: 'write' }>;

export interface StoreRate {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly serverCores: number;
}

/** The number of objects that the clients of the engine patch. */
const PATCHED_OBJECTS = 5000;

let store: Store;
let created = 0;

serveJobs(async (job: BareStoreJob) => {
  if (job.kind === 'write') return measure(job);
  store = await openSqliteStore(job.file);
});

async function measure({ verb, writers, objectBytes, warmMs, measureMs }: WriteJob): Promise<StoreRate> {
  const latencies: number[] = [];
  const run: { phase: 'warm' | 'measured' | 'over' } = { phase: 'warm' };
  const share = Math.floor(PATCHED_OBJECTS / writers);
  const writer = async (number: number) => {
    const bytes = Buffer.alloc(objectBytes, 'x');
    const encode = () => Buffer.from(bytes);
    for (let turn = 0; run.phase !== 'over'; turn++) {
      const patched = `shelf-b/b-${number * share + (turn % share)}`;
      const id = verb === 'create' ? `yard/${created++}` : patched;
      const expected = verb === 'create' ? 0 : (store.latest('parcels', patched)?.revision ?? 0);
      const start = performance.now();
      await store.put({ collection: 'parcels', id, expected, encode });
      if (run.phase === 'measured') latencies.push(performance.now() - start);
    }
  };
  const ended = Promise.all(Array.from({ length: writers }, (_, number) => writer(number)));
  await pause(warmMs);
  run.phase = 'measured';
  const [before, from] = [process.cpuUsage(), performance.now()];
  await Promise.race([pause(measureMs), ended]);
  run.phase = 'over';
  const seconds = (performance.now() - from) / 1000;
  const cpu = process.cpuUsage(before);
  const perSecond = latencies.length / seconds;
  await ended;
  return {
    perSecond,
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
    serverCores: (cpu.user + cpu.system) / 1e6 / seconds,
  };
}

/**
 * Measures the time from sending a write to its arrival at each watcher. The floor is a bare server that only forwards
 * it.
 */
import { WATCH_NAMESPACE, type EngineBench } from './engine-bench.ts';
import type { Options } from './options.ts';
import type { Target } from './raw-h2.ts';
import type { Row } from './report.ts';
import { median } from './statistics.ts';
import type { Delivery } from './watch-load.ts';

const WATCHERS = [1, 50, 500];
const BAR_WATCHERS = 500;
const MAX_P99_MS = 50;
const WRITES_PER_SECOND = 200;
const WARM_SHARE = 0.2;

export async function* measureWatches(bench: EngineBench, options: Options, bare: Target): AsyncGenerator<Row> {
  const engine = await bench.target();
  for (const watchers of WATCHERS) {
    const hasBar = watchers === BAR_WATCHERS;
    const [floors, engines]: [Delivery[], Delivery[]] = [[], []];
    for (let round = 0; round < (hasBar ? options.rounds : 1); round++) {
      const run = (target: Target) =>
        bench.load.run<Delivery>({
          kind: 'watch',
          target,
          namespace: WATCH_NAMESPACE,
          prefix: `w${watchers}-r${round}`,
          watchers,
          writesPerSecond: WRITES_PER_SECOND,
          writes: options.watchWrites,
          warmWrites: Math.floor(options.watchWrites * WARM_SHARE),
        });
      floors.push(await run(bare));
      engines.push(await run(engine));
    }
    const medianOf = (runs: readonly Delivery[], of: keyof Delivery) => median(runs.map((delivery) => delivery[of]));
    yield {
      what: `watch p99, ${watchers} watcher${watchers === 1 ? '' : 's'}`,
      unit: 'ms',
      engine: medianOf(engines, 'p99Ms'),
      floor: medianOf(floors, 'p99Ms'),
      bar: hasBar ? { below: MAX_P99_MS } : undefined,
      p50Ms: medianOf(engines, 'p50Ms'),
      p99Ms: medianOf(engines, 'p99Ms'),
      cpuUs: median(engines.map(cpuUs)),
      floorCpuUs: median(floors.map(cpuUs)),
      serverCores: medianOf(engines, 'serverCores'),
      clientCores: medianOf(engines, 'clientCores'),
      note: `${medianOf(engines, 'writesPerSecond').toFixed(0)} writes/s, ${describeDeliveries(engines)}`,
    };
  }
}

/** Returns the CPU time per delivery. */
function cpuUs({ serverCores, deliveriesPerSecond }: Delivery): number {
  return (serverCores / deliveriesPerSecond) * 1e6;
}

function describeDeliveries(runs: readonly Delivery[]): string {
  const sum = (of: 'missing' | 'repeated') => runs.reduce((total, run) => total + run[of], 0);
  const [missing, repeated] = [sum('missing'), sum('repeated')];
  if (missing === 0 && repeated === 0) return 'each event once per watcher';
  return `${missing} EVENTS MISSING, ${repeated} REPEATED`;
}

/** From sending a write to its arrival at each watcher; the floor is a bare server that only passes it on. */
import { WATCH_NAMESPACE, type Ground } from './ground.ts';
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

export async function* measureWatches(ground: Ground, options: Options, bare: Target): AsyncGenerator<Row> {
  const engine = await ground.target();
  for (const watchers of WATCHERS) {
    const heavy = watchers === BAR_WATCHERS;
    const [floors, engines]: [Delivery[], Delivery[]] = [[], []];
    for (let round = 0; round < (heavy ? options.rounds : 1); round++) {
      const run = (target: Target) =>
        ground.load.ask<Delivery>({
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
    const middle = (runs: readonly Delivery[], of: keyof Delivery) => median(runs.map((delivery) => delivery[of]));
    yield {
      what: `watch p99, ${watchers} watcher${watchers === 1 ? '' : 's'}`,
      unit: 'ms',
      engine: middle(engines, 'p99Ms'),
      floor: middle(floors, 'p99Ms'),
      bar: heavy ? { below: MAX_P99_MS } : undefined,
      p50Ms: middle(engines, 'p50Ms'),
      p99Ms: middle(engines, 'p99Ms'),
      cpuUs: median(engines.map(cpuUs)),
      floorCpuUs: median(floors.map(cpuUs)),
      serverCores: middle(engines, 'serverCores'),
      clientCores: middle(engines, 'clientCores'),
      note: `${middle(engines, 'writesPerSecond').toFixed(0)} writes/s, ${onceText(engines)}`,
    };
  }
}

/** For one delivery. */
function cpuUs({ serverCores, deliveriesPerSecond }: Delivery): number {
  return (serverCores / deliveriesPerSecond) * 1e6;
}

function onceText(runs: readonly Delivery[]): string {
  const sum = (of: 'missing' | 'repeated') => runs.reduce((total, run) => total + run[of], 0);
  const [missing, repeated] = [sum('missing'), sum('repeated')];
  if (missing === 0 && repeated === 0) return 'each event once to each';
  return `${missing} EVENTS MISSING, ${repeated} REPEATED`;
}

/** Measures memory and start-up with 10,000 objects. The floor is a process that only opens the same store. */
import { prepareEngine } from './engine-process.ts';
import { NAMESPACES, PATCH_STOCK, READ_STOCK, type EngineBench } from './engine-bench.ts';
import type { Options } from './options.ts';
import { PARCEL } from './parcel.ts';
import { pause } from './pause.ts';
import type { Row } from './report.ts';
import { median } from './statistics.ts';

const MAX_RSS_BYTES = 250e6;
const MAX_START_SECONDS = 3;
/** Time for work and garbage collection of an idle process. */
const SETTLE_MS = 1500;

/** Fills a new engine and leaves it running. Returns rows if they are requested. */
export async function measureFootprint(bench: EngineBench, { starts, topics, profileDir }: Options): Promise<Row[]> {
  const first = await bench.startEngine();
  await bench.stopEngine();
  const empty = await bench.startEngine();
  const target = await bench.target();
  await prepareEngine(target, [PARCEL], NAMESPACES);
  for (const stock of [READ_STOCK, PATCH_STOCK]) await bench.load.run({ kind: 'fill', target, stock });
  await pause(SETTLE_MS);
  const filled = { now: bench.engine.memory('VmRSS'), peak: bench.engine.memory('VmHWM') };
  await bench.stopEngine();

  const isRequested = topics.has('footprint');
  const floors: Footprint[] = [];
  const engines: Footprint[] = [];
  for (let round = 0; round < (isRequested ? starts : 0); round++) {
    const bare = await bench.openBareStore();
    await pause(SETTLE_MS);
    floors.push({ seconds: bare.startMs / 1000, bytes: bare.memory('VmRSS') });
    await bare.stop();
    const engine = await bench.startEngine();
    await pause(SETTLE_MS);
    engines.push({ seconds: engine.startMs / 1000, bytes: engine.memory('VmRSS') });
    await bench.stopEngine();
  }
  await bench.startEngine({ isProfiled: profileDir !== undefined });
  if (!isRequested) return [];

  const medianOf = (runs: readonly Footprint[], of: keyof Footprint) => median(runs.map((run) => run[of]));
  const floor = { seconds: medianOf(floors, 'seconds'), bytes: medianOf(floors, 'bytes') };
  const memoryBar = { below: MAX_RSS_BYTES };
  return [
    {
      what: 'RSS, 10,000 objects just created',
      unit: 'bytes',
      engine: filled.now,
      floor: floor.bytes,
      bar: memoryBar,
      note: `at most ${Math.round(filled.peak / 1e6)} MB`,
    },
    {
      what: 'RSS, restarted with them',
      unit: 'bytes',
      engine: medianOf(engines, 'bytes'),
      floor: floor.bytes,
      bar: memoryBar,
    },
    {
      what: 'start-up with them',
      unit: 'seconds',
      engine: medianOf(engines, 'seconds'),
      floor: floor.seconds,
      bar: { below: MAX_START_SECONDS },
      note: `empty ${(empty.startMs / 1000).toFixed(2)} s, the very first ${(first.startMs / 1000).toFixed(2)} s`,
    },
  ];
}

interface Footprint {
  readonly seconds: number;
  readonly bytes: number;
}

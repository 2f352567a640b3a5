/** Memory and start-up with 10,000 objects; their floor is a process that only opens the same store. */
import { prepareEngine } from './engine-process.ts';
import { NAMESPACES, PATCH_STOCK, READ_STOCK, type Ground } from './ground.ts';
import type { Options } from './options.ts';
import { PARCEL } from './parcel.ts';
import { pause } from './pause.ts';
import type { Row } from './report.ts';
import { median } from './statistics.ts';

const MAX_RSS_BYTES = 250e6;
const MAX_START_SECONDS = 3;
/** For what a process frees and does by itself once it is left alone. */
const SETTLE_MS = 1500;

/** Fills a new engine and leaves it running. The rows are for whoever wants them. */
export async function measureFootprint(ground: Ground, { starts, topics, profileDir }: Options): Promise<Row[]> {
  const first = await ground.startEngine();
  await ground.stopEngine();
  const empty = await ground.startEngine();
  const target = await ground.target();
  await prepareEngine(target, [PARCEL], NAMESPACES);
  for (const stock of [READ_STOCK, PATCH_STOCK]) await ground.load.ask({ kind: 'fill', target, stock });
  await pause(SETTLE_MS);
  const filled = { now: ground.engine.memory('VmRSS'), peak: ground.engine.memory('VmHWM') };
  await ground.stopEngine();

  const wanted = topics.has('footprint');
  const floors: Footprint[] = [];
  const engines: Footprint[] = [];
  for (let round = 0; round < (wanted ? starts : 0); round++) {
    const bare = await ground.openBareStore();
    await pause(SETTLE_MS);
    floors.push({ seconds: bare.startMs / 1000, bytes: bare.memory('VmRSS') });
    await bare.stop();
    const engine = await ground.startEngine();
    await pause(SETTLE_MS);
    engines.push({ seconds: engine.startMs / 1000, bytes: engine.memory('VmRSS') });
    await ground.stopEngine();
  }
  await ground.startEngine({ profiled: profileDir !== undefined });
  if (!wanted) return [];

  const middle = (runs: readonly Footprint[], of: keyof Footprint) => median(runs.map((run) => run[of]));
  const floor = { seconds: middle(floors, 'seconds'), bytes: middle(floors, 'bytes') };
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
      engine: middle(engines, 'bytes'),
      floor: floor.bytes,
      bar: memoryBar,
    },
    {
      what: 'start-up with them',
      unit: 'seconds',
      engine: middle(engines, 'seconds'),
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

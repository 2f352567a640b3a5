/**
 * `npm run bench`: the engine's figures beside floors that are measured in the same run. Bars are information: the
 * exit code tells only whether everything could be measured. bench/README.md says how to read it.
 */
import { writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { measureAdmission } from './measure-admission.ts';
import { Ground } from './ground.ts';
import { measureFootprint } from './measure-footprint.ts';
import { measureWrites, Reads } from './measure-rates.ts';
import { measureWatches } from './measure-watch.ts';
import { parseOptions, USAGE, type Options, type Topic } from './options.ts';
import { machineCpuMs, ownCpuMs } from './proc-files.ts';
import { heading, rowText, verdict, type Row } from './report.ts';

/** More than this makes rates and latencies those of somebody else. */
const MAX_OTHERS_CORES = 0.2;

/** Rows as they are measured. */
async function* measure(ground: Ground, options: Options): AsyncGenerator<Row> {
  const { topics } = options;
  yield* await measureFootprint(ground, options);
  if ([...topics].some((topic) => FLOORED.has(topic))) yield* measureBesideFloors(ground, options);
  if (topics.has('admission')) yield* measureAdmission(ground, options);
}

/** Those whose floor is another server or store. */
const FLOORED: ReadonlySet<Topic> = new Set(['get', 'list', 'create', 'patch', 'watch']);

async function* measureBesideFloors(ground: Ground, options: Options): AsyncGenerator<Row> {
  const { topics } = options;
  const bare = await ground.startBareHttp2();
  const reads = new Reads(ground, options, bare.target);
  if (topics.has('get')) yield* reads.get();
  if (topics.has('list')) yield* reads.list();
  if (topics.has('create') || topics.has('patch')) {
    const floors = { store: await ground.startBareStore(), http2: bare.target, objectBytes: bare.objectBytes };
    if (topics.has('create')) yield* measureWrites('create', ground, options, floors);
    if (topics.has('patch')) yield* measureWrites('patch', ground, options, floors);
  }
  if (topics.has('watch')) yield* measureWatches(ground, options, bare.target);
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function machine(): string {
  const cores = cpus();
  return `${cores.length} cores of ${cores[0]?.model.trim() ?? 'an unknown processor'}, Node ${process.version}`;
}

async function run(options: Options): Promise<void> {
  const [start, busyBefore] = [performance.now(), machineCpuMs()];
  print(`${machine()}${options.quick ? ', quick' : ''}\n\n${heading()}`);
  const ground = await Ground.prepare(options.profileDir);
  process.once('SIGINT', () => void ground.clear().finally(() => process.exit(130)));
  const rows: Row[] = [];
  try {
    for await (const row of measure(ground, options)) {
      rows.push(row);
      print(rowText(row));
    }
  } finally {
    await ground.clear();
  }
  const seconds = (performance.now() - start) / 1000;
  const othersCores = Math.max(0, machineCpuMs() - busyBefore - ownCpuMs()) / 1000 / seconds;
  const trust = othersCores > MAX_OTHERS_CORES ? ': too busy to trust these figures' : '';
  print(`\n${seconds.toFixed(0)} s in all; other programs used ${othersCores.toFixed(2)} cores meanwhile${trust}`);
  print(
    'floor: a bare node:http2 server (GET, LIST, watch), the same deletes unguarded (DELETE), the bare store (the rest)',
  );
  if (options.jsonFile !== undefined) {
    const figures = rows.map((row) => ({ ...row, verdict: verdict(row) }));
    await writeFile(
      options.jsonFile,
      `${JSON.stringify({ machine: machine(), quick: options.quick, seconds, othersCores, figures }, undefined, 2)}\n`,
    );
  }
}

const options = parseOptions(process.argv.slice(2));
if (options.help) print(USAGE.trimEnd());
else await run(options);

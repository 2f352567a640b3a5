/**
 * `npm run bench`: the engine's figures beside floors that are measured in the same run. Bars are information: the
 * exit code tells only whether everything could be measured. bench/README.md says how to read it.
 */
import { writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { costsOf, deletionsText, type Cost } from './delete-protection/deletions-text.ts';
import { measureDeletions, type Deletions } from './delete-protection/measure-deletions.ts';
import { deviceMapText } from './device-map/device-map-text.ts';
import { measureDeviceMap, type DeviceMapFigures } from './device-map/measure-device-map.ts';
import { measureAdmission } from './measure-admission.ts';
import { measureBesideApiserver } from './measure-apiserver.ts';
import { Ground } from './ground.ts';
import { measureFootprint } from './measure-footprint.ts';
import { measureWrites, Reads } from './measure-rates.ts';
import { measureWatches } from './measure-watch.ts';
import { measureTransition } from './machine-types/measure-transition.ts';
import { parseOptions, TABLE_TOPICS, TRANSITION_TOPIC, USAGE, VM_TOPICS, type Options, type Topic } from './options.ts';
import { machineCpuMs, ownCpuMs } from './proc-files.ts';
import { heading, rowText, verdict, type Row } from './report.ts';
import { measureVms } from './vms/measure-vms.ts';
import { VmGround } from './vms/vm-ground.ts';

/** More than this makes rates and latencies those of somebody else. */
const MAX_OTHERS_CORES = 0.2;

/** Ends what runs, when the benchmark ends before it is done. */
const clears = new Set<() => Promise<void>>();

/** Rows as they are measured. What each needs is gone when its rows are there. */
async function* measure(options: Options): AsyncGenerator<Row> {
  const { topics, profileDir } = options;
  if ([...topics].some(isEngineTopic)) {
    const ground = await Ground.prepare(profileDir);
    yield* cleared(ground, () => measureEngine(ground, options));
  }
  for (const topic of VM_TOPICS) {
    if (!topics.has(topic)) continue;
    const ground = await VmGround.prepare(profileDir);
    yield* cleared(ground, () => measureVms(topic, ground, options));
  }
  if (topics.has(TRANSITION_TOPIC)) {
    const ground = await VmGround.prepare(profileDir);
    yield* cleared(ground, () => measureTransition(ground, options.transition));
  }
}

const hasTable = (topic: Topic) => TABLE_TOPICS.some((known) => known === topic);
const isEngineTopic = (topic: Topic) =>
  !hasTable(topic) && topic !== TRANSITION_TOPIC && !VM_TOPICS.some((known) => known === topic);

/** A table of its own, too. */
async function* measureDevices({ topics, profileDir, deviceMap }: Options): AsyncGenerator<DeviceMapFigures> {
  if (!topics.has('device-map')) return;
  const ground = await VmGround.prepare(profileDir);
  yield* cleared(ground, async function* () {
    yield await measureDeviceMap(ground, deviceMap);
  });
}

/** A table of its own, the seed's. */
async function* measureProtection({ topics, profileDir, deletions }: Options): AsyncGenerator<Deletions> {
  if (!topics.has('delete-protection')) return;
  const ground = await VmGround.prepare(profileDir);
  yield* cleared(ground, async function* () {
    yield await measureDeletions(ground, deletions);
  });
}

async function* cleared<T>(ground: { clear(): Promise<void> }, figures: () => AsyncIterable<T>): AsyncGenerator<T> {
  const clear = () => ground.clear();
  clears.add(clear);
  try {
    yield* figures();
  } finally {
    clears.delete(clear);
    await clear();
  }
}

async function* measureEngine(ground: Ground, options: Options): AsyncGenerator<Row> {
  const { topics } = options;
  yield* await measureFootprint(ground, options);
  if ([...topics].some((topic) => FLOORED.has(topic))) yield* measureBesideFloors(ground, options);
  if (topics.has('apiserver')) yield* measureBesideApiserver(ground, options);
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

const FLOORS = [
  'floor: a bare node:http2 server (GET, LIST, watch), the same deletes unguarded (DELETE), the bare store (the rest);',
  'of the lines of kube-apiserver: that one, or its figures of another machine with two cores;',
  'of VMs: the same QEMU command by hand (apply), the same plane without VMs (RSS, restart), merge patches of the same field (machine types)',
].join('\n');

async function run(options: Options): Promise<void> {
  const [start, busyBefore] = [performance.now(), machineCpuMs()];
  const hasRows = [...options.topics].some((topic) => !hasTable(topic));
  print(`${machine()}${options.quick ? ', quick' : ''}\n`);
  if (hasRows) print(heading());
  for (const [signal, number] of [
    ['SIGINT', 2],
    ['SIGTERM', 15],
  ] as const) {
    process.once(signal, () => {
      void Promise.allSettled([...clears].map((clear) => clear())).finally(() => process.exit(128 + number));
    });
  }
  const rows: Row[] = [];
  for await (const row of measure(options)) {
    rows.push(row);
    print(rowText(row));
  }
  const costs: Cost[] = [];
  for await (const deletions of measureProtection(options)) {
    costs.push(...costsOf(deletions));
    print(`${hasRows ? '\n' : ''}${deletionsText(deletions)}`);
  }
  const deviceMaps: DeviceMapFigures[] = [];
  for await (const figures of measureDevices(options)) {
    deviceMaps.push(figures);
    print(`${hasRows || costs.length > 0 ? '\n' : ''}${deviceMapText(figures)}`);
  }
  const seconds = (performance.now() - start) / 1000;
  const othersCores = Math.max(0, machineCpuMs() - busyBefore - ownCpuMs()) / 1000 / seconds;
  const isBusy = othersCores > MAX_OTHERS_CORES;
  const trust =
    options.beside !== undefined ? ', the server beside among them' : isBusy ? ': too busy to trust these figures' : '';
  print(`\n${seconds.toFixed(0)} s in all; other programs used ${othersCores.toFixed(2)} cores meanwhile${trust}`);
  if (hasRows) print(FLOORS);
  if (options.jsonFile !== undefined) {
    const figures = rows.map((row) => ({ ...row, verdict: verdict(row) }));
    const all = {
      machine: machine(),
      quick: options.quick,
      seconds,
      othersCores,
      figures,
      deletions: costs,
      deviceMaps,
    };
    await writeFile(options.jsonFile, `${JSON.stringify(all, undefined, 2)}\n`);
  }
}

const options = parseOptions(process.argv.slice(2));
if (options.help) print(USAGE.trimEnd());
else await run(options);

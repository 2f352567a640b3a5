/**
 * `npm run bench`: the engine's figures, compared with floors that are measured in the same run. Bars are information:
 * the exit code only says whether everything could be measured. bench/README.md explains the output.
 */
import { writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { computeCosts, deletionsText, type Cost } from './delete-protection/deletions-text.ts';
import { measureDeletions, type Deletions } from './delete-protection/measure-deletions.ts';
import { deviceMapText } from './device-map/device-map-text.ts';
import { measureDeviceMap, type DeviceMapFigures } from './device-map/measure-device-map.ts';
import { measureAdmission } from './measure-admission.ts';
import { measureBesideApiserver } from './measure-apiserver.ts';
import { EngineBench } from './engine-bench.ts';
import { measureFootprint } from './measure-footprint.ts';
import { measureHostile } from './hostile/measure-hostile.ts';
import { measureWrites, Reads } from './measure-rates.ts';
import { measureWatches } from './measure-watch.ts';
import { measureNetwork } from './network/measure-network.ts';
import { measureTransition } from './machine-types/measure-transition.ts';
import {
  HOSTILE_TOPIC,
  NETWORK_TOPIC,
  parseOptions,
  TABLE_TOPICS,
  TRANSITION_TOPIC,
  USAGE,
  VM_TOPICS,
  type Options,
  type Topic,
} from './options.ts';
import { machineCpuMs, ownCpuMs } from './proc-files.ts';
import { heading, rowText, verdict, type Row } from './report.ts';
import { measureVms } from './vms/measure-vms.ts';
import { VmBench } from './vms/vm-bench.ts';

/** The limit of CPU usage by other programs, above which rates and latencies are not reliable. */
const MAX_OTHERS_CORES = 0.2;

/** Functions that stop all processes if the benchmark ends early. */
const tearDowns = new Set<() => Promise<void>>();

/** Yields rows as they are measured. The processes of each measurement are stopped after its rows. */
async function* measure(options: Options): AsyncGenerator<Row> {
  const { topics, profileDir } = options;
  if ([...topics].some(isEngineTopic)) {
    const bench = await EngineBench.prepare(profileDir);
    yield* withTearDown(bench, () => measureEngine(bench, options));
  }
  for (const topic of VM_TOPICS) {
    if (!topics.has(topic)) continue;
    const bench = await VmBench.prepare(profileDir);
    yield* withTearDown(bench, () => measureVms(topic, bench, options));
  }
  if (topics.has(TRANSITION_TOPIC)) {
    const bench = await VmBench.prepare(profileDir);
    yield* withTearDown(bench, () => measureTransition(bench, options.transition));
  }
  if (topics.has(HOSTILE_TOPIC)) {
    const bench = await VmBench.prepare(profileDir);
    yield* withTearDown(bench, () => measureHostile(bench, options.hostile));
  }
  if (topics.has(NETWORK_TOPIC)) yield* measureNetwork(options.network);
}

const hasTable = (topic: Topic) => TABLE_TOPICS.some((known) => known === topic);
const isEngineTopic = (topic: Topic) =>
  !hasTable(topic) &&
  topic !== TRANSITION_TOPIC &&
  topic !== HOSTILE_TOPIC &&
  topic !== NETWORK_TOPIC &&
  !VM_TOPICS.some((known) => known === topic);

/** Yields the figures of the device map, which have their own table. */
async function* measureDevices({ topics, profileDir, deviceMap }: Options): AsyncGenerator<DeviceMapFigures> {
  if (!topics.has('device-map')) return;
  const bench = await VmBench.prepare(profileDir);
  yield* withTearDown(bench, async function* () {
    yield await measureDeviceMap(bench, deviceMap);
  });
}

/** Yields the figures of delete protection, which have their own table. */
async function* measureProtection({ topics, profileDir, deletions }: Options): AsyncGenerator<Deletions> {
  if (!topics.has('delete-protection')) return;
  const bench = await VmBench.prepare(profileDir);
  yield* withTearDown(bench, async function* () {
    yield await measureDeletions(bench, deletions);
  });
}

async function* withTearDown<T>(
  bench: { tearDown(): Promise<void> },
  figures: () => AsyncIterable<T>,
): AsyncGenerator<T> {
  const tearDown = () => bench.tearDown();
  tearDowns.add(tearDown);
  try {
    yield* figures();
  } finally {
    tearDowns.delete(tearDown);
    await tearDown();
  }
}

async function* measureEngine(bench: EngineBench, options: Options): AsyncGenerator<Row> {
  const { topics } = options;
  yield* await measureFootprint(bench, options);
  if ([...topics].some((topic) => TOPICS_WITH_FLOOR.has(topic))) yield* measureBesideFloors(bench, options);
  if (topics.has('apiserver')) yield* measureBesideApiserver(bench, options);
  if (topics.has('admission')) yield* measureAdmission(bench, options);
}

/** Topics whose floor is another server or store. */
const TOPICS_WITH_FLOOR: ReadonlySet<Topic> = new Set(['get', 'list', 'create', 'patch', 'watch']);

async function* measureBesideFloors(bench: EngineBench, options: Options): AsyncGenerator<Row> {
  const { topics } = options;
  const bare = await bench.startBareHttp2();
  const reads = new Reads(bench, options, bare.target);
  if (topics.has('get')) yield* reads.get();
  if (topics.has('list')) yield* reads.list();
  if (topics.has('create') || topics.has('patch')) {
    const floors = { store: await bench.startBareStore(), http2: bare.target, objectBytes: bare.objectBytes };
    if (topics.has('create')) yield* measureWrites('create', bench, options, floors);
    if (topics.has('patch')) yield* measureWrites('patch', bench, options, floors);
  }
  if (topics.has('watch')) yield* measureWatches(bench, options, bare.target);
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function describeMachine(): string {
  const cores = cpus();
  return `${cores.length} cores of ${cores[0]?.model.trim() ?? 'an unknown processor'}, Node ${process.version}`;
}

const FLOORS = [
  'floor: a bare node:http2 server (GET, LIST, watch), the same deletes unguarded (DELETE), the bare store (the rest);',
  'in lines about kube-apiserver: that server, or its figures from another machine with two cores;',
  'of the network: the same guests on taps of a bridge, without namespaces and rules (traffic), user mode (VM start);',
  'of hostile requests: the same bystander in the quiet time before each attack;',
  'of VMs: the same QEMU command started manually (apply), the same plane without VMs (RSS, restart), merge patches of the same field (machine types)',
].join('\n');

async function run(options: Options): Promise<void> {
  const [start, busyBefore] = [performance.now(), machineCpuMs()];
  const hasRows = [...options.topics].some((topic) => !hasTable(topic));
  print(`${describeMachine()}${options.quick ? ', quick' : ''}\n`);
  if (hasRows) print(heading());
  for (const [signal, number] of [
    ['SIGINT', 2],
    ['SIGTERM', 15],
  ] as const) {
    process.once(signal, () => {
      void Promise.allSettled([...tearDowns].map((tearDown) => tearDown())).finally(() => process.exit(128 + number));
    });
  }
  const rows: Row[] = [];
  for await (const row of measure(options)) {
    rows.push(row);
    print(rowText(row));
  }
  const costs: Cost[] = [];
  for await (const deletions of measureProtection(options)) {
    costs.push(...computeCosts(deletions));
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
  const remark =
    options.beside !== undefined
      ? ', including the other API server'
      : isBusy
        ? ': too busy to trust these figures'
        : '';
  print(`\n${seconds.toFixed(0)} s in all; other programs used ${othersCores.toFixed(2)} cores meanwhile${remark}`);
  if (hasRows) print(FLOORS);
  if (options.jsonFile !== undefined) {
    const figures = rows.map((row) => ({ ...row, verdict: verdict(row) }));
    const all = {
      machine: describeMachine(),
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

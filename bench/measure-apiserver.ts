/**
 * Compares the engine with kube-apiserver and etcd: HTTP/2, TLS, 64 clients on the same machine, objects of 3 KB as
 * served, every write durable. With `--beside`, that server is measured in the same run. Otherwise its figures are
 * those of 1.32.9 on another machine with two cores; on a slower or busier machine our ratio is smaller.
 */
import type { Rate } from './closed-loop.ts';
import { prepareEngine, targetOf } from './engine-process.ts';
import { CREATE_NAMESPACE, NAMESPACES, PATCH_STOCK, READ_STOCK, type EngineBench } from './engine-bench.ts';
import type { OperationSpec } from './operations.ts';
import type { Options } from './options.ts';
import { PARCEL } from './parcel.ts';
import type { Target } from './raw-h2.ts';
import type { Row } from './report.ts';
import { median } from './statistics.ts';

const RECORDED: Figures = { create: 500, patch: 299, get: 1181, list: 790, pages: 3000 };
const CLIENTS = 64;
const MIN_RATIO = 10;
/** The share of the time of kube-apiserver. */
const MAX_LIST_SHARE = 1 / 5;
const PAGE_ITEMS = 500;

type RateName = 'get' | 'create' | 'patch';
type ListName = 'list' | 'pages';
/** Rates per second, and milliseconds for lists. */
type Figures = Readonly<Record<RateName | ListName, number>>;

const RATES: Readonly<Record<RateName, string>> = {
  get: 'GET',
  create: 'durable create',
  patch: 'durable merge patch',
};

export async function* measureBesideApiserver(bench: EngineBench, options: Options): AsyncGenerator<Row> {
  const engine = await bench.target();
  const other = options.beside === undefined ? undefined : await prepareOther(bench, options.beside);
  const note =
    other === undefined ? 'compared with the recorded kube-apiserver' : 'compared with the kube-apiserver of this run';
  for (const name of Object.keys(RATES) as RateName[]) {
    const rates: Rate[] = [];
    const floors: number[] = [];
    for (let round = 0; round < options.rounds; round++) {
      if (other !== undefined) floors.push((await measureRate(bench, options, other, name)).perSecond);
      rates.push(await measureRate(bench, options, engine, name));
    }
    yield { ...rateRow(name, rates, other === undefined ? RECORDED[name] : median(floors)), note };
  }
  for (const name of ['list', 'pages'] as const) {
    const floor = other === undefined ? RECORDED[name] : await measureLists(bench, options, other, name);
    yield { ...listRow(name, await measureLists(bench, options, engine, name), floor), note };
  }
}

async function prepareOther(bench: EngineBench, kubeconfig: string): Promise<Target> {
  const target = await targetOf(kubeconfig);
  await prepareEngine(target, [PARCEL], NAMESPACES);
  for (const stock of [READ_STOCK, PATCH_STOCK]) await bench.load.run({ kind: 'fill', target, stock });
  return target;
}

function measureRate(
  bench: EngineBench,
  { warmMs, measureMs }: Options,
  target: Target,
  name: RateName,
): Promise<Rate> {
  const operation = operationOf(name);
  return bench.load.run<Rate>({ kind: 'rate', target, clients: CLIENTS, warmMs, measureMs, operation });
}

function operationOf(name: RateName): OperationSpec {
  if (name === 'get') return { verb: name, stock: READ_STOCK };
  if (name === 'patch') return { verb: name, stock: PATCH_STOCK };
  // Names that no earlier round or run has used.
  return { verb: name, namespace: CREATE_NAMESPACE, prefix: `k${Date.now().toString(36)}` };
}

function rateRow(name: RateName, rates: readonly Rate[], floor: number): Row {
  const medianOf = (of: keyof Rate) => median(rates.map((one) => one[of]));
  return {
    what: `${RATES[name]}, ${CLIENTS} clients`,
    unit: 'perSecond',
    engine: medianOf('perSecond'),
    floor,
    bar: { ratioAtLeast: MIN_RATIO },
    p50Ms: medianOf('p50Ms'),
    p99Ms: medianOf('p99Ms'),
    serverCores: medianOf('serverCores'),
    clientCores: medianOf('clientCores'),
  };
}

function measureLists(bench: EngineBench, { rounds }: Options, target: Target, name: ListName): Promise<number> {
  const { namespace, count: items } = READ_STOCK;
  const pages = name === 'pages' ? { pageItems: PAGE_ITEMS } : {};
  return bench.load.run<number>({ kind: 'lists', target, namespace, items, times: 3 * rounds, ...pages });
}

function listRow(name: ListName, engine: number, floor: number): Row {
  return {
    what: `LIST of 5,000${name === 'pages' ? ` in pages of ${PAGE_ITEMS}` : ''}, 1 client`,
    unit: 'ms',
    engine,
    floor,
    bar: { below: floor * MAX_LIST_SHARE },
  };
}

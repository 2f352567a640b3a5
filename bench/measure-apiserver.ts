/**
 * The engine beside kube-apiserver with etcd: HTTP/1.1, TLS, 64 clients on the same machine, objects of 3 KB as served,
 * every write durable. With `--beside` that server is measured in the same run; else its figures are those of 1.32.9 on
 * another machine with two cores, and a machine that is slower or busier than that one makes our ratio smaller.
 */
import type { Rate } from './closed-loop.ts';
import { prepareEngine, targetOf } from './engine-process.ts';
import { CREATE_NAMESPACE, NAMESPACES, PATCH_STOCK, READ_STOCK, type Ground } from './ground.ts';
import type { OperationSpec } from './operations.ts';
import type { Options } from './options.ts';
import { PARCEL } from './parcel.ts';
import type { Target } from './raw-h2.ts';
import type { Row } from './report.ts';
import { median } from './statistics.ts';

const RECORDED: Figures = { create: 500, patch: 299, get: 1181, list: 790, pages: 3000 };
const CLIENTS = 64;
const MIN_RATIO = 10;
/** Of its time. */
const MAX_LIST_SHARE = 1 / 5;
const PAGE_ITEMS = 500;

type RateName = 'get' | 'create' | 'patch';
type ListName = 'list' | 'pages';
/** Per second, and in ms. */
type Figures = Readonly<Record<RateName | ListName, number>>;

const RATES: Readonly<Record<RateName, string>> = {
  get: 'GET',
  create: 'durable create',
  patch: 'durable merge patch',
};

export async function* measureBesideApiserver(ground: Ground, options: Options): AsyncGenerator<Row> {
  const engine = await ground.target();
  const other = options.beside === undefined ? undefined : await prepareOther(ground, options.beside);
  const note = other === undefined ? 'beside the recorded kube-apiserver' : 'beside the kube-apiserver of this run';
  for (const name of Object.keys(RATES) as RateName[]) {
    const rates: Rate[] = [];
    const floors: number[] = [];
    for (let round = 0; round < options.rounds; round++) {
      if (other !== undefined) floors.push((await rate(ground, options, other, name)).perSecond);
      rates.push(await rate(ground, options, engine, name));
    }
    yield { ...rateRow(name, rates, other === undefined ? RECORDED[name] : median(floors)), note };
  }
  for (const name of ['list', 'pages'] as const) {
    const floor = other === undefined ? RECORDED[name] : await lists(ground, options, other, name);
    yield { ...listRow(name, await lists(ground, options, engine, name), floor), note };
  }
}

async function prepareOther(ground: Ground, kubeconfig: string): Promise<Target> {
  const target = await targetOf(kubeconfig);
  await prepareEngine(target, [PARCEL], NAMESPACES);
  for (const stock of [READ_STOCK, PATCH_STOCK]) await ground.load.ask({ kind: 'fill', target, stock });
  return target;
}

function rate(ground: Ground, { warmMs, measureMs }: Options, target: Target, name: RateName): Promise<Rate> {
  const operation = operationOf(name);
  return ground.load.ask<Rate>({ kind: 'rate', http1: true, target, clients: CLIENTS, warmMs, measureMs, operation });
}

function operationOf(name: RateName): OperationSpec {
  if (name === 'get') return { verb: name, stock: READ_STOCK };
  if (name === 'patch') return { verb: name, stock: PATCH_STOCK };
  // Names that no round and no run before has used.
  return { verb: name, namespace: CREATE_NAMESPACE, prefix: `k${Date.now().toString(36)}` };
}

function rateRow(name: RateName, rates: readonly Rate[], floor: number): Row {
  const middle = (of: keyof Rate) => median(rates.map((one) => one[of]));
  return {
    what: `${RATES[name]}, ${CLIENTS} clients, HTTP/1.1`,
    unit: 'perSecond',
    engine: middle('perSecond'),
    floor,
    bar: { ratioAtLeast: MIN_RATIO },
    p50Ms: middle('p50Ms'),
    p99Ms: middle('p99Ms'),
    serverCores: middle('serverCores'),
    clientCores: middle('clientCores'),
  };
}

function lists(ground: Ground, { rounds }: Options, target: Target, name: ListName): Promise<number> {
  const { namespace, count: items } = READ_STOCK;
  const pages = name === 'pages' ? { pageItems: PAGE_ITEMS } : {};
  return ground.load.ask<number>({ kind: 'lists', target, namespace, items, times: 3 * rounds, ...pages });
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

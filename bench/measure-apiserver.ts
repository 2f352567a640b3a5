/**
 * The engine under the conditions under which kube-apiserver 1.32.9 with etcd was measured on another machine with two
 * cores: HTTP/1.1, TLS, 64 clients on the same machine, objects of 3 KB as served, every write durable. Its figures are
 * constants here; a machine that is slower or busier than that one makes our ratio smaller.
 */
import type { Rate } from './closed-loop.ts';
import { CREATE_NAMESPACE, PATCH_STOCK, READ_STOCK, type Ground } from './ground.ts';
import type { OperationSpec } from './operations.ts';
import type { Options } from './options.ts';
import type { Row } from './report.ts';
import { median } from './statistics.ts';

const APISERVER = { createPerSecond: 500, patchPerSecond: 299, getPerSecond: 1181, listMs: 790, pagesMs: 3000 };
const CLIENTS = 64;
const MIN_RATIO = 10;
/** Of its time. */
const MAX_LIST_SHARE = 1 / 5;
const PAGE_ITEMS = 500;

export async function* measureBesideApiserver(ground: Ground, options: Options): AsyncGenerator<Row> {
  const rows: [string, number, (round: number) => OperationSpec][] = [
    ['GET', APISERVER.getPerSecond, () => ({ verb: 'get', stock: READ_STOCK })],
    [
      'durable create',
      APISERVER.createPerSecond,
      (round) => ({ verb: 'create', namespace: CREATE_NAMESPACE, prefix: `k${round}` }),
    ],
    ['durable merge patch', APISERVER.patchPerSecond, () => ({ verb: 'patch', stock: PATCH_STOCK })],
  ];
  for (const [what, floor, operation] of rows) yield await rateRow(ground, options, { what, floor, operation });
  for (const pageItems of [undefined, PAGE_ITEMS]) yield await listRow(ground, options, pageItems);
}

interface Compared {
  readonly what: string;
  readonly floor: number;
  operation(round: number): OperationSpec;
}

async function rateRow(ground: Ground, options: Options, { what, floor, operation }: Compared): Promise<Row> {
  const { rounds, warmMs, measureMs } = options;
  const target = await ground.target();
  const rates: Rate[] = [];
  for (let round = 0; round < rounds; round++) {
    const job = { kind: 'rate', http1: true, target, clients: CLIENTS, warmMs, measureMs } as const;
    rates.push(await ground.load.ask<Rate>({ ...job, operation: operation(round) }));
  }
  const middle = (of: keyof Rate) => median(rates.map((rate) => rate[of]));
  return {
    what: `${what}, ${CLIENTS} clients, HTTP/1.1`,
    unit: 'perSecond',
    engine: middle('perSecond'),
    floor,
    bar: { ratioAtLeast: MIN_RATIO },
    p50Ms: middle('p50Ms'),
    p99Ms: middle('p99Ms'),
    serverCores: middle('serverCores'),
    clientCores: middle('clientCores'),
    note: 'beside kube-apiserver',
  };
}

async function listRow(ground: Ground, { rounds }: Options, pageItems: number | undefined): Promise<Row> {
  const { namespace, count: items } = READ_STOCK;
  const [job, times] = [{ kind: 'lists', target: await ground.target(), namespace, items } as const, 3 * rounds];
  const isPaged = pageItems !== undefined;
  const floor = isPaged ? APISERVER.pagesMs : APISERVER.listMs;
  return {
    what: `LIST of 5,000${isPaged ? ` in pages of ${pageItems}` : ''}, 1 client`,
    unit: 'ms',
    engine: await ground.load.ask<number>({ ...job, times, ...(isPaged ? { pageItems } : {}) }),
    floor,
    bar: { below: floor * MAX_LIST_SHARE },
    note: 'beside kube-apiserver',
  };
}

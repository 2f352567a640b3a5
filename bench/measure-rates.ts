/** Requests per second: reads against the bare server, durable writes against the bare store. */
import type { BareStoreJob, StoreRate } from './bare-store.ts';
import type { Rate } from './closed-loop.ts';
import { CREATE_NAMESPACE, PATCH_STOCK, READ_STOCK, type Ground } from './ground.ts';
import type { JobProcess } from './jobs.ts';
import type { OperationSpec } from './operations.ts';
import type { Options } from './options.ts';
import type { Target } from './raw-h2.ts';
import { amount, type Row } from './report.ts';
import { median } from './statistics.ts';

const GET_CLIENTS = [1, 16];
const GET_BAR_CLIENTS = 16;
const LIST_CLIENTS = 4;
const WRITE_CLIENTS = [1, 16, 64];
const WRITE_BAR_CLIENTS = 64;
const MIN_GET_RATIO = 0.5;
const MIN_LIST_RATIO = 0.6;
const MIN_WRITE_RATIO = 0.25;

/** The same requests to a bare server and to the engine, in turns. */
export class Reads {
  readonly #ground: Ground;
  readonly #options: Options;
  readonly #bare: Target;

  constructor(ground: Ground, options: Options, bare: Target) {
    this.#ground = ground;
    this.#options = options;
    this.#bare = bare;
  }

  async *get(): AsyncGenerator<Row> {
    for (const clients of GET_CLIENTS) {
      const bar = clients === GET_BAR_CLIENTS ? { ratioAtLeast: MIN_GET_RATIO } : undefined;
      const rates = await this.#compare({ verb: 'get', stock: READ_STOCK }, clients);
      yield { what: `GET, ${count(clients)}`, unit: 'perSecond', bar, ...rates };
    }
  }

  async *list(): AsyncGenerator<Row> {
    const rates = await this.#compare({ verb: 'list', namespace: READ_STOCK.namespace }, LIST_CLIENTS);
    const what = `LIST of 5,000, ${count(LIST_CLIENTS)}`;
    yield { what, unit: 'perSecond', bar: { ratioAtLeast: MIN_LIST_RATIO }, ...rates };
  }

  async #compare(operation: OperationSpec, clients: number): Promise<Compared> {
    const { rounds, warmMs, measureMs } = this.#options;
    const engine = await this.#ground.target();
    const at = (target: Target) =>
      this.#ground.load.ask<Rate>({ kind: 'rate', target, operation, clients, warmMs, measureMs });
    return compare(
      rounds,
      () => at(this.#bare),
      () => at(engine),
    );
  }
}

export interface WriteFloors {
  readonly store: JobProcess<BareStoreJob>;
  readonly http2: Target;
  readonly objectBytes: number;
}

/**
 * Durable writes through the API and to the bare store, in turns, with as many writers. Where there is a bar, a bare
 * server that takes the same requests and stores nothing tells how much of the way HTTP/2 and TLS alone are.
 */
export async function* measureWrites(
  verb: 'create' | 'patch',
  ground: Ground,
  { rounds, warmMs, measureMs }: Options,
  floors: WriteFloors,
): AsyncGenerator<Row> {
  const { store, http2, objectBytes } = floors;
  const engine = await ground.target();
  for (const clients of WRITE_CLIENTS) {
    const spec = (round: number): OperationSpec =>
      verb === 'patch'
        ? { verb, stock: PATCH_STOCK }
        : { verb, namespace: CREATE_NAMESPACE, prefix: `c${clients}-r${round}` };
    const through = (target: Target, round: number) =>
      ground.load.ask<Rate>({ kind: 'rate', target, operation: spec(round), clients, warmMs, measureMs });
    const barred = clients === WRITE_BAR_CLIENTS;
    const unstored: number[] = [];
    const compared = await compare(
      rounds,
      () => store.ask<StoreRate>({ kind: 'write', verb, writers: clients, objectBytes, warmMs, measureMs }),
      async (round) => {
        if (barred) unstored.push((await through(http2, round)).perSecond);
        return through(engine, round);
      },
    );
    yield {
      what: `${verb === 'create' ? 'durable create' : 'durable merge patch'}, ${count(clients)}`,
      unit: 'perSecond',
      ...compared,
      ...(barred
        ? {
            bar: { ratioAtLeast: MIN_WRITE_RATIO },
            note: `bare server, nothing stored: ${amount(median(unstored), 'perSecond')}`,
          }
        : {}),
    };
  }
}

type Compared = Pick<
  Row,
  'engine' | 'floor' | 'p50Ms' | 'p99Ms' | 'cpuUs' | 'floorCpuUs' | 'serverCores' | 'clientCores'
>;

/** In turns, because a machine is not as fast in one minute as in the next. */
async function compare(
  rounds: number,
  floor: () => Promise<StoreRate>,
  engine: (round: number) => Promise<Rate>,
): Promise<Compared> {
  const floors: StoreRate[] = [];
  const engines: Rate[] = [];
  for (let round = 0; round < rounds; round++) {
    floors.push(await floor());
    engines.push(await engine(round));
  }
  const middle = (of: keyof Rate) => median(engines.map((rate) => rate[of]));
  return {
    engine: middle('perSecond'),
    floor: median(floors.map(({ perSecond }) => perSecond)),
    p50Ms: middle('p50Ms'),
    p99Ms: middle('p99Ms'),
    cpuUs: median(engines.map(cpuUs)),
    floorCpuUs: median(floors.map(cpuUs)),
    serverCores: middle('serverCores'),
    clientCores: middle('clientCores'),
  };
}

function cpuUs({ serverCores, perSecond }: Pick<Rate, 'serverCores' | 'perSecond'>): number {
  return (serverCores / perSecond) * 1e6;
}

function count(clients: number): string {
  return clients === 1 ? '1 client' : `${clients} clients`;
}

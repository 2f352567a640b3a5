/** Measures requests per second: reads compared with the bare server, durable writes compared with the bare store. */
import type { BareStoreJob, StoreRate } from './bare-store.ts';
import type { Rate } from './closed-loop.ts';
import { CREATE_NAMESPACE, PATCH_STOCK, READ_STOCK, type EngineBench } from './engine-bench.ts';
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

/** Sends the same requests to a bare server and to the engine, alternating. */
export class Reads {
  readonly #bench: EngineBench;
  readonly #options: Options;
  readonly #bare: Target;

  constructor(bench: EngineBench, options: Options, bare: Target) {
    this.#bench = bench;
    this.#options = options;
    this.#bare = bare;
  }

  async *get(): AsyncGenerator<Row> {
    for (const clients of GET_CLIENTS) {
      const bar = clients === GET_BAR_CLIENTS ? { ratioAtLeast: MIN_GET_RATIO } : undefined;
      const rates = await this.#compare({ verb: 'get', stock: READ_STOCK }, clients);
      yield { what: `GET, ${describeClients(clients)}`, unit: 'perSecond', bar, ...rates };
    }
  }

  async *list(): AsyncGenerator<Row> {
    const rates = await this.#compare({ verb: 'list', namespace: READ_STOCK.namespace }, LIST_CLIENTS);
    const what = `LIST of 5,000, ${describeClients(LIST_CLIENTS)}`;
    yield { what, unit: 'perSecond', bar: { ratioAtLeast: MIN_LIST_RATIO }, ...rates };
  }

  async #compare(operation: OperationSpec, clients: number): Promise<Comparison> {
    const { rounds, warmMs, measureMs } = this.#options;
    const engine = await this.#bench.target();
    const at = (target: Target) =>
      this.#bench.load.run<Rate>({ kind: 'rate', target, operation, clients, warmMs, measureMs });
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
 * Measures durable writes through the API and to the bare store, alternating, with as many writers. For the line with a
 * bar, a bare server that receives the same requests and stores nothing shows the share of HTTP/2 and TLS.
 */
export async function* measureWrites(
  verb: 'create' | 'patch',
  bench: EngineBench,
  { rounds, warmMs, measureMs }: Options,
  floors: WriteFloors,
): AsyncGenerator<Row> {
  const { store, http2, objectBytes } = floors;
  const engine = await bench.target();
  for (const clients of WRITE_CLIENTS) {
    const spec = (round: number): OperationSpec =>
      verb === 'patch'
        ? { verb, stock: PATCH_STOCK }
        : { verb, namespace: CREATE_NAMESPACE, prefix: `c${clients}-r${round}` };
    const measureAt = (target: Target, round: number) =>
      bench.load.run<Rate>({ kind: 'rate', target, operation: spec(round), clients, warmMs, measureMs });
    const hasBar = clients === WRITE_BAR_CLIENTS;
    const bareRates: number[] = [];
    const comparison = await compare(
      rounds,
      () => store.run<StoreRate>({ kind: 'write', verb, writers: clients, objectBytes, warmMs, measureMs }),
      async (round) => {
        if (hasBar) bareRates.push((await measureAt(http2, round)).perSecond);
        return measureAt(engine, round);
      },
    );
    yield {
      what: `${verb === 'create' ? 'durable create' : 'durable merge patch'}, ${describeClients(clients)}`,
      unit: 'perSecond',
      ...comparison,
      ...(hasBar
        ? {
            bar: { ratioAtLeast: MIN_WRITE_RATIO },
            note: `bare server, nothing stored: ${amount(median(bareRates), 'perSecond')}`,
          }
        : {}),
    };
  }
}

type Comparison = Pick<
  Row,
  'engine' | 'floor' | 'p50Ms' | 'p99Ms' | 'cpuUs' | 'floorCpuUs' | 'serverCores' | 'clientCores'
>;

/** Alternates, because the speed of a machine changes from minute to minute. */
async function compare(
  rounds: number,
  floor: () => Promise<StoreRate>,
  engine: (round: number) => Promise<Rate>,
): Promise<Comparison> {
  const floors: StoreRate[] = [];
  const engines: Rate[] = [];
  for (let round = 0; round < rounds; round++) {
    floors.push(await floor());
    engines.push(await engine(round));
  }
  const medianOf = (of: keyof Rate) => median(engines.map((rate) => rate[of]));
  return {
    engine: medianOf('perSecond'),
    floor: median(floors.map(({ perSecond }) => perSecond)),
    p50Ms: medianOf('p50Ms'),
    p99Ms: medianOf('p99Ms'),
    cpuUs: median(engines.map(cpuUs)),
    floorCpuUs: median(floors.map(cpuUs)),
    serverCores: medianOf('serverCores'),
    clientCores: medianOf('clientCores'),
  };
}

function cpuUs({ serverCores, perSecond }: Pick<Rate, 'serverCores' | 'perSecond'>): number {
  return (serverCores / perSecond) * 1e6;
}

function describeClients(clients: number): string {
  return clients === 1 ? '1 client' : `${clients} clients`;
}

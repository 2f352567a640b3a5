/**
 * Deletes of several stocks in turns of a few, so that what the machine does meanwhile hits all of them alike. Who
 * begins changes from turn to turn: what one leaves behind (garbage, a busy disk) must not always hit the same one.
 */
import { FIELDS, type Stock } from './operations.ts';
import { parcelPath } from './parcel.ts';
import { threadsCpuMs } from './proc-files.ts';
import { RawConnection, type Target } from './raw-h2.ts';
import { percentile } from './statistics.ts';

export interface DeletesJob {
  readonly kind: 'deletes';
  readonly target: Target;
  /** All of the same size. */
  readonly stocks: readonly Stock[];
  readonly clients: number;
  /** Deletes of one turn. */
  readonly batch: number;
}

/** For one stock, over all its turns. */
export interface Deletes {
  readonly count: number;
  readonly ms: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly serverCpuMs: number;
  readonly clientCpuMs: number;
}

export async function measureDeletes({ target, stocks, clients, batch }: DeletesJob): Promise<Deletes[]> {
  const connections = await Promise.all(Array.from({ length: clients }, () => RawConnection.connect(target, FIELDS)));
  const tallies = stocks.map(() => ({ ms: 0, serverCpuMs: 0, clientCpuMs: 0, latencies: [] as number[] }));
  const { count } = stocks[0]!;
  for (let from = 0, turn = 0; from < count; from += batch, turn++) {
    for (let place = 0; place < stocks.length; place++) {
      const at = (turn + place) % stocks.length;
      const tally = tallies[at]!;
      const cpuBefore = threadsCpuMs(target.pid);
      const [ownBefore, start] = [process.cpuUsage(), performance.now()];
      await deleteBatch(connections, stocks[at]!, from, Math.min(from + batch, count), tally.latencies);
      tally.ms += performance.now() - start;
      const own = process.cpuUsage(ownBefore);
      tally.clientCpuMs += (own.user + own.system) / 1000;
      tally.serverCpuMs += threadsCpuMs(target.pid) - cpuBefore;
    }
  }
  for (const connection of connections) connection.close();
  return tallies.map(({ latencies, ...sums }) => ({
    count,
    ...sums,
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
  }));
}

/** One request in flight on each connection, until all of the batch are answered. */
async function deleteBatch(
  connections: readonly RawConnection[],
  { namespace, prefix, kind }: Stock,
  from: number,
  until: number,
  latencies: number[],
): Promise<void> {
  let next = from;
  const client = (connection: RawConnection) =>
    new Promise<void>((resolve, reject) => {
      let sentAt = 0;
      const step = () => {
        if (next >= until) return resolve();
        const path = parcelPath(namespace, prefix, next++, kind);
        sentAt = performance.now();
        connection.request('DELETE', path, undefined, receiver);
      };
      const receiver = {
        onEnd: (status: number) => {
          latencies.push(performance.now() - sentAt);
          if (status === 200) step();
          else reject(new Error(`DELETE of ${kind?.plural} was answered with ${status}; expected 200`));
        },
      };
      step();
    });
  await Promise.all(connections.map(client));
}

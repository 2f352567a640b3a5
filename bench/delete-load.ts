/**
 * Deletes objects of several stocks in alternating batches, so that the machine affects all of them alike. The first
 * stock of a round changes: what a batch leaves behind (garbage, a busy disk) must not always affect the same one.
 */
import { FIELDS, type Stock } from './operations.ts';
import { parcelPath } from './parcel.ts';
import { threadsCpuMs } from './proc-files.ts';
import { RawConnection, type Target } from './raw-h2.ts';
import { percentile } from './statistics.ts';

export interface DeletesJob {
  readonly kind: 'deletes';
  readonly target: Target;
  /** All stocks have the same size. */
  readonly stocks: readonly Stock[];
  readonly clients: number;
  /** The number of deletes per batch. */
  readonly batch: number;
}

/** The durations of the deletes of one stock. */
export interface Deletes {
  readonly turns: readonly Turn[];
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface Turn {
  readonly count: number;
  readonly ms: number;
  readonly serverCpuMs: number;
  readonly clientCpuMs: number;
}

export async function measureDeletes({ target, stocks, clients, batch }: DeletesJob): Promise<Deletes[]> {
  const connections = await Promise.all(Array.from({ length: clients }, () => RawConnection.connect(target, FIELDS)));
  const tallies = stocks.map(() => ({ turns: [] as Turn[], latencies: [] as number[] }));
  const { count } = stocks[0]!;
  for (let from = 0, turn = 0; from < count; from += batch, turn++) {
    const until = Math.min(from + batch, count);
    for (let offset = 0; offset < stocks.length; offset++) {
      const at = (turn + offset) % stocks.length;
      const { turns, latencies } = tallies[at]!;
      const cpuBefore = threadsCpuMs(target.pid);
      const [ownBefore, start] = [process.cpuUsage(), performance.now()];
      await deleteBatch(connections, stocks[at]!, from, until, latencies);
      const ms = performance.now() - start;
      const ownCpu = process.cpuUsage(ownBefore);
      const serverCpuMs = threadsCpuMs(target.pid) - cpuBefore;
      turns.push({ count: until - from, ms, serverCpuMs, clientCpuMs: (ownCpu.user + ownCpu.system) / 1000 });
    }
  }
  for (const connection of connections) connection.close();
  return tallies.map(({ turns, latencies }) => ({
    turns,
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
  }));
}

/** Deletes a batch, with one request in flight on each connection. */
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
          else reject(new Error(`The response to a DELETE of ${kind?.plural} has status ${status}; expected 200`));
        },
      };
      step();
    });
  await Promise.all(connections.map(client));
}

/**
 * One writer at a constant rate and many watchers: measures the time from sending each write until it reaches each
 * watcher, and checks that each watcher receives each event exactly once.
 */
import { FIELDS, JSON_FIELDS } from './operations.ts';
import { collectionPath, ParcelBodies, sequenceIn } from './parcel.ts';
import { pause } from './pause.ts';
import { cpuMs } from './proc-files.ts';
import { RawConnection, type Target } from './raw-h2.ts';
import { percentile } from './statistics.ts';

export interface WatchJob {
  readonly kind: 'watch';
  readonly target: Target;
  readonly namespace: string;
  readonly prefix: string;
  readonly watchers: number;
  readonly writesPerSecond: number;
  readonly writes: number;
  /** Writes at the start whose deliveries are checked but not measured. */
  readonly warmWrites: number;
}

export interface Delivery {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly writesPerSecond: number;
  readonly deliveriesPerSecond: number;
  readonly missing: number;
  readonly repeated: number;
  readonly serverCores: number;
  readonly clientCores: number;
}

const WATCHERS_PER_CONNECTION = 100;
const STRAGGLERS_MS = 10_000;
/** The time to wait for repeated events after every event was delivered once. */
const REPEATS_MS = 200;
const NEWLINE = 10;

export async function measureWatch(job: WatchJob): Promise<Delivery> {
  const { target, namespace, watchers, writes } = job;
  const writer = await RawConnection.connect(target, JSON_FIELDS);
  const since = await currentRevision(writer, namespace);
  const count = Math.ceil(watchers / WATCHERS_PER_CONNECTION);
  const connections = await Promise.all(Array.from({ length: count }, () => RawConnection.connect(target, FIELDS)));
  const log = new DeliveryLog(watchers, writes, job.warmWrites);
  const path = `${collectionPath(namespace)}?watch=true&resourceVersion=${since}&allowWatchBookmarks=true`;
  const at = (watcher: number) => connections[watcher % count]!;
  await Promise.all(Array.from({ length: watchers }, (_, watcher) => openWatch(at(watcher), path, watcher, log)));

  const [serverBefore, clientBefore, from] = [cpuMs(target.pid), process.cpuUsage(), performance.now()];
  await sendWrites(job, writer, log);
  const seconds = (performance.now() - from) / 1000;
  await log.complete(STRAGGLERS_MS);
  const totalSeconds = (performance.now() - from) / 1000;
  const cpu = process.cpuUsage(clientBefore);
  const serverCores = (cpuMs(target.pid) - serverBefore) / 1000 / totalSeconds;
  await pause(REPEATS_MS);
  for (const connection of [writer, ...connections]) connection.close();
  return {
    ...log.result(),
    deliveriesPerSecond: log.delivered / totalSeconds,
    writesPerSecond: writes / seconds,
    serverCores,
    clientCores: (cpu.user + cpu.system) / 1e6 / totalSeconds,
  };
}

async function currentRevision(connection: RawConnection, namespace: string): Promise<string> {
  const { status, body } = await connection.exchange('GET', `${collectionPath(namespace)}?limit=1`);
  if (status !== 200) throw new Error(`Cannot list in "${namespace}": the response has status ${status}`);
  return (JSON.parse(body.toString()) as { metadata: { resourceVersion: string } }).metadata.resourceVersion;
}

/** Resolves when the response headers have arrived: from then on, every event must be delivered. */
function openWatch(connection: RawConnection, path: string, watcher: number, log: DeliveryLog): Promise<void> {
  let rest: Buffer | undefined;
  return new Promise((resolve, reject) => {
    connection.request('GET', path, undefined, {
      onStatus: (status) =>
        status === 200 ? resolve() : reject(new Error(`The response to a watch has status ${status}`)),
      onEnd: (status) => reject(new Error(`A watch ended at its start with status ${status}`)),
      onData(chunk) {
        const now = performance.now();
        const bytes = rest === undefined ? chunk : Buffer.concat([rest, chunk]);
        let start = 0;
        for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
          const sequence = sequenceIn(bytes, start, end);
          // Bookmarks have no sequence number.
          if (sequence >= 0) log.deliver(watcher, sequence, now);
          start = end + 1;
        }
        rest = start === bytes.length ? undefined : Buffer.from(bytes.subarray(start));
      },
    });
  });
}

/**
 * Sends each write when it is due, without waiting for the response to the previous one. Resolves after all responses.
 */
function sendWrites(
  { namespace, prefix, writes, writesPerSecond }: WatchJob,
  writer: RawConnection,
  log: DeliveryLog,
): Promise<void> {
  const path = collectionPath(namespace);
  const bodies = new ParcelBodies(prefix);
  const start = performance.now();
  let sent = 0;
  let responses = 0;
  return new Promise((resolve, reject) => {
    const onEnd = (status: number) => {
      if (status !== 201) reject(new Error(`The response to a create has status ${status}`));
      if (++responses === writes) resolve();
    };
    const timer = setInterval(() => {
      const due = Math.min(writes, Math.floor(((performance.now() - start) * writesPerSecond) / 1000) + 1);
      while (sent < due) {
        const body = bodies.body(sent);
        log.sent(sent++);
        writer.request('POST', path, body, { onEnd });
      }
      if (sent === writes) clearInterval(timer);
    }, 1);
  });
}

/** Records which watcher has received which event, and when. */
class DeliveryLog {
  readonly #sentAt: Float64Array;
  readonly #seen: Uint8Array;
  readonly #latencies: Float64Array;
  readonly #writes: number;
  readonly #warm: number;
  readonly #expected: number;
  #timed = 0;
  #delivered = 0;
  #repeated = 0;
  #done: (() => void) | undefined;

  constructor(watchers: number, writes: number, warm: number) {
    this.#sentAt = new Float64Array(writes);
    this.#seen = new Uint8Array(watchers * writes);
    this.#latencies = new Float64Array(watchers * (writes - warm));
    this.#writes = writes;
    this.#warm = warm;
    this.#expected = watchers * writes;
  }

  sent(sequence: number): void {
    this.#sentAt[sequence] = performance.now();
  }

  get delivered(): number {
    return this.#delivered;
  }

  deliver(watcher: number, sequence: number, now: number): void {
    const index = watcher * this.#writes + sequence;
    if (this.#seen[index] === 1) {
      this.#repeated++;
      return;
    }
    this.#seen[index] = 1;
    if (sequence >= this.#warm) this.#latencies[this.#timed++] = now - this.#sentAt[sequence]!;
    if (++this.#delivered === this.#expected) this.#done?.();
  }

  /** Resolves when everything has been delivered, or after the timeout. */
  complete(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#delivered === this.#expected) return resolve();
      const timer = setTimeout(resolve, timeoutMs);
      this.#done = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  result(): Pick<Delivery, 'p50Ms' | 'p99Ms' | 'maxMs' | 'missing' | 'repeated'> {
    const latencies = this.#latencies.subarray(0, this.#timed);
    return {
      p50Ms: percentile(latencies, 0.5),
      p99Ms: percentile(latencies, 0.99),
      maxMs: percentile(latencies, 1),
      missing: this.#expected - this.#delivered,
      repeated: this.#repeated,
    };
  }
}

/** Measures the rate of responses to N clients, each with its own connection and one request in flight. */
import { operation, type Operation, type OperationSpec } from './operations.ts';
import { pause } from './pause.ts';
import { cpuMs } from './proc-files.ts';
import { RawConnection, type Connection, type Target } from './raw-h2.ts';
import { percentile } from './statistics.ts';

export interface RateJob {
  readonly kind: 'rate';
  readonly target: Target;
  readonly operation: OperationSpec;
  readonly clients: number;
  readonly warmMs: number;
  readonly measureMs: number;
}

export interface Rate {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU usage during the measurement, in cores. */
  readonly serverCores: number;
  readonly clientCores: number;
}

export async function measureRate(job: RateJob): Promise<Rate> {
  const { target, clients, warmMs, measureMs } = job;
  const prepared = operation(job.operation, clients);
  const connections = await Promise.all(
    Array.from({ length: clients }, () => RawConnection.connect(target, prepared.fields)),
  );
  const run = new Run(prepared);
  const ended = connections.map((connection, client) => run.client(connection, client));
  await pause(warmMs);
  run.start();
  const [serverBefore, clientBefore, from] = [cpuMs(target.pid), process.cpuUsage(), performance.now()];
  await Promise.race([pause(measureMs), ...ended]);
  const seconds = (performance.now() - from) / 1000;
  const done = run.stop();
  const cpu = process.cpuUsage(clientBefore);
  const serverCores = (cpuMs(target.pid) - serverBefore) / 1000 / seconds;
  await Promise.all(ended);
  for (const connection of connections) connection.close();
  return {
    perSecond: done / seconds,
    p50Ms: percentile(run.latencies, 0.5),
    p99Ms: percentile(run.latencies, 0.99),
    serverCores,
    clientCores: (cpu.user + cpu.system) / 1e6 / seconds,
  };
}

class Run {
  readonly latencies: number[] = [];
  readonly #operation: Operation;
  #measuring = false;
  #stopping = false;

  constructor(prepared: Operation) {
    this.#operation = prepared;
  }

  start(): void {
    this.#measuring = true;
  }

  /** Stops the run and returns the number of responses since the start. */
  stop(): number {
    this.#measuring = false;
    this.#stopping = true;
    return this.latencies.length;
  }

  /** Resolves after the last response when the run is stopped; rejects at the first unexpected response. */
  client(connection: Connection, client: number): Promise<void> {
    const { method, next, expect } = this.#operation;
    return new Promise((resolve, reject) => {
      let turn = 0;
      let sentAt = 0;
      const step = () => {
        const { path, body } = next(client, turn++);
        sentAt = performance.now();
        connection.request(method, path, body, receiver);
      };
      const receiver = {
        onEnd: (status: number) => {
          if (this.#measuring) this.latencies.push(performance.now() - sentAt);
          if (status !== expect)
            reject(new Error(`The response to ${method} has status ${status}; expected ${expect}`));
          else if (this.#stopping) resolve();
          else step();
        },
      };
      step();
    });
  }
}

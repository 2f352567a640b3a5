/** A separate process: creates VMs as fast as several clients can, and watches until all of them are Running. */
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { createHttpTransport } from '#client/http.ts';
import { Informer } from '#client/informer.ts';
import { createClient } from '#client/rest-client.ts';
import { systemClock } from '#lib/clock.ts';
import { createLog } from '#lib/log.ts';
import { serveJobs } from '../jobs.ts';
import { JSON_FIELDS } from '../operations.ts';
import { RawConnection, type Target } from '../raw-h2.ts';
import { percentile } from '../statistics.ts';
import { NAMESPACE, smallVm } from './manifests.ts';

export interface FleetJob {
  readonly target: Target;
  readonly count: number;
  readonly clients: number;
}

export interface Fleet {
  /** From the first create until the last VM is Running. */
  readonly seconds: number;
  /** From the first create until the last response. */
  readonly createSeconds: number;
  /** From sending a create until its VM is seen Running. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly clientCores: number;
}

/** Without any change for this long, the VMs will not start. */
const STALLED_MS = 60_000;

serveJobs(startFleet);

async function startFleet({ target, count, clients }: FleetJob): Promise<Fleet> {
  const { host, port, ca, cert, key } = target;
  const access = {
    server: `https://${host}:${port}`,
    namespace: NAMESPACE,
    certificateAuthority: ca,
    clientCertificate: cert,
    clientKey: key,
    insecureSkipTlsVerify: false,
  };
  const transport = createHttpTransport(access, { userAgent: 'selfsame-bench', clock: systemClock });
  const log = createLog('warn');
  const reader = createClient(transport);
  const informer = new Informer({ reader, type: VIRTUAL_MACHINES, clock: systemClock, log, namespace: NAMESPACE });
  const stopping = new AbortController();
  const running = informer.start({ signal: stopping.signal });
  const tally = new Tally(count);
  informer.onChange((name, change) => tally.recordChange(name, change.new));
  await informer.waitForSync();

  const [cpuBefore, from] = [process.cpuUsage(), performance.now()];
  await createAll(target, { count, clients }, tally);
  const createSeconds = (performance.now() - from) / 1000;
  await tally.waitUntilComplete();
  const seconds = (performance.now() - from) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  stopping.abort();
  await running;
  transport.close();
  const { latencies } = tally;
  return {
    seconds,
    createSeconds,
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
    clientCores: (cpu.user + cpu.system) / 1e6 / seconds,
  };
}

class Tally {
  readonly latencies: number[] = [];
  readonly #count: number;
  readonly #sent = new Map<string, number>();
  #changedAt = performance.now();

  constructor(count: number) {
    this.#count = count;
  }

  recordSent(name: string): void {
    this.#sent.set(`${NAMESPACE}/${name}`, performance.now());
  }

  recordChange(key: string, vm: VirtualMachine | undefined): void {
    this.#changedAt = performance.now();
    const sentAt = this.#sent.get(key);
    if (sentAt === undefined || vm?.status?.printableStatus !== 'Running') return;
    this.#sent.delete(key);
    this.latencies.push(this.#changedAt - sentAt);
    if (this.latencies.length === this.#count) this.#done();
  }

  async waitUntilComplete(): Promise<void> {
    if (this.latencies.length === this.#count) return;
    await new Promise<void>((resolve, reject) => {
      this.#done = resolve;
      const timer = setInterval(() => {
        if (performance.now() - this.#changedAt < STALLED_MS) return;
        reject(new Error(`${this.latencies.length} of ${this.#count} VMs are Running, and nothing changes any more`));
      }, STALLED_MS / 10);
      timer.unref();
    });
  }

  #done: () => void = () => {};
}

async function createAll(
  target: Target,
  { count, clients }: { count: number; clients: number },
  tally: Tally,
): Promise<void> {
  const path = `/apis/kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachines`;
  const vm = smallVm('') as unknown as { metadata: { name: string }; spec: { runStrategy: string } };
  vm.spec.runStrategy = 'Always';
  let next = 0;
  const client = async () => {
    const connection = await RawConnection.connect(target, JSON_FIELDS);
    while (next < count) {
      const name = `fleet-${next++}`;
      vm.metadata.name = name;
      const text = Buffer.from(JSON.stringify(vm));
      tally.recordSent(name);
      const { status, body } = await connection.exchange('POST', path, text);
      if (status !== 201)
        throw new Error(`Cannot create VM ${name}: the response has status ${status}: ${body.toString()}`);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: clients }, client));
}

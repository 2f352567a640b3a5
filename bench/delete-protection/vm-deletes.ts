/**
 * A separate process: creates VMs in several namespaces and deletes them one after another. Each DELETE is sent when a
 * watch has seen the previous VM disappear.
 */
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { createHttpTransport } from '#client/http.ts';
import { Informer } from '#client/informer.ts';
import { createClient } from '#client/rest-client.ts';
import { systemClock } from '#lib/clock.ts';
import { createLog } from '#lib/log.ts';
import { serveJobs } from '../jobs.ts';
import { JSON_FIELDS } from '../operations.ts';
import { pause } from '../pause.ts';
import { threadsCpuMs } from '../proc-files.ts';
import { RawConnection, type Target } from '../raw-h2.ts';
import { smallVm } from '../vms/manifests.ts';

/** `namespace/name`, as in informers. */
type Key = string;

export type VmDeletesJob =
  | { readonly kind: 'open'; readonly target: Target }
  | { readonly kind: 'make'; readonly vms: readonly Key[]; readonly running: boolean; readonly labels: Labels }
  /** Dry-run deletes of each VM in turn. */
  | { readonly kind: 'rehearse'; readonly vms: readonly Key[]; readonly times: number }
  /** Deletes the VMs one after another, each until it is gone. Returns the milliseconds that each took. */
  | { readonly kind: 'delete'; readonly vms: readonly Key[] };

type Labels = Readonly<Record<string, string>>;

const CLIENTS = 8;
/** Without any change for this long, the VMs will not reach the expected state. */
const STALLED_MS = 60_000;
/** The server is idle if it uses less than a tenth of a core. After the timeout, the deletes begin anyway. */
const IDLE = { intervalMs: 40, maxCpuMs: 4, timeoutMs: 5000 };

interface OpenConnection {
  readonly target: Target;
  readonly connection: RawConnection;
  readonly informer: Informer<VirtualMachine>;
}

let open: Promise<OpenConnection> | undefined;

serveJobs(async (job: VmDeletesJob): Promise<unknown> => {
  if (job.kind === 'open') return void (await (open = connect(job.target)));
  if (open === undefined) throw new Error(`Cannot ${job.kind} VMs: there is no connection; send the job "open" first`);
  if (job.kind === 'make') return createVms(await open, job);
  return job.kind === 'rehearse' ? dryRunDeletes(await open, job) : deleteAll(await open, job.vms);
});

async function connect(target: Target): Promise<OpenConnection> {
  const access = {
    server: `https://${target.host}:${target.port}`,
    namespace: 'default',
    certificateAuthority: target.ca,
    clientCertificate: target.cert,
    clientKey: target.key,
    insecureSkipTlsVerify: false,
  };
  const reader = createClient(createHttpTransport(access, { userAgent: 'selfsame-bench', clock: systemClock }));
  const informer = new Informer({ reader, type: VIRTUAL_MACHINES, clock: systemClock, log: createLog('warn') });
  void informer.start({ signal: new AbortController().signal });
  await informer.waitForSync();
  return { target, connection: await RawConnection.connect(target, JSON_FIELDS), informer };
}

const pathOf = (namespace: string) => `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines`;

function parseKey(key: Key): { namespace: string; name: string } {
  const [namespace = '', name = ''] = key.split('/');
  return { namespace, name };
}

/** Creates the VMs and resolves when all of them are running, or are reported as stopped. */
async function createVms(
  { target, informer }: OpenConnection,
  { vms, running, labels }: VmDeletesJob & { kind: 'make' },
): Promise<void> {
  const { spec, ...vm } = smallVm('');
  const left = [...vms];
  const maker = async () => {
    const connection = await RawConnection.connect(target, JSON_FIELDS);
    for (let key = left.pop(); key !== undefined; key = left.pop()) {
      const runStrategy = running ? 'Always' : 'Halted';
      const object = { ...vm, metadata: { ...parseKey(key), labels }, spec: { ...spec, runStrategy } };
      const path = pathOf(parseKey(key).namespace);
      const { status, body } = await connection.exchange('POST', path, Buffer.from(JSON.stringify(object)));
      if (status !== 201)
        throw new Error(`Cannot create VM ${key}: the response has status ${status}: ${body.toString()}`);
    }
    connection.close();
  };
  const wanted = running ? 'Running' : 'Stopped';
  const created = waitForAll(informer, vms, (vm) => vm?.status?.printableStatus === wanted);
  await Promise.all([created, ...Array.from({ length: CLIENTS }, maker)]);
}

async function dryRunDeletes(
  { connection }: OpenConnection,
  { vms, times }: VmDeletesJob & { kind: 'rehearse' },
): Promise<void> {
  for (let time = 0; time < times; time++) for (const key of vms) await sendDelete(connection, key, '?dryRun=All');
}

async function sendDelete(connection: RawConnection, key: Key, query = ''): Promise<void> {
  const { namespace, name } = parseKey(key);
  const { status, body } = await connection.exchange('DELETE', `${pathOf(namespace)}/${name}${query}`);
  if (status !== 200) throw new Error(`Cannot delete VM ${key}: the response has status ${status}: ${body.toString()}`);
}

async function deleteAll({ target, connection, informer }: OpenConnection, vms: readonly Key[]): Promise<number[]> {
  // The work that creating them left behind must not be measured.
  await waitUntilIdle(target.pid);
  const times: number[] = [];
  for (const key of vms) {
    const from = performance.now();
    const gone = informer.waitUntil(() => informer.get(key) === undefined, { signal: AbortSignal.timeout(STALLED_MS) });
    await sendDelete(connection, key);
    if (!(await gone))
      throw new Error(`Cannot measure the delete of VM ${key}: it still exists after ${STALLED_MS} ms`);
    times.push(performance.now() - from);
  }
  return times;
}

/** Resolves when each VM was seen in the expected state; rejects when nothing changes any more. */
async function waitForAll(
  informer: Informer<VirtualMachine>,
  vms: readonly Key[],
  isExpected: (vm: VirtualMachine | undefined) => boolean,
): Promise<void> {
  const left = new Set(vms);
  await new Promise<void>((resolve, reject) => {
    let changedAt = performance.now();
    const timer = setInterval(() => {
      if (performance.now() - changedAt < STALLED_MS) return;
      reject(
        new Error(
          `Cannot continue: ${left.size} of ${vms.length} VMs are not in the expected state, and nothing changes`,
        ),
      );
    }, STALLED_MS / 10);
    const unsubscribe = informer.onChange((key, { new: vm }) => {
      changedAt = performance.now();
      if (!isExpected(vm) || !left.delete(key) || left.size > 0) return;
      clearInterval(timer);
      unsubscribe();
      resolve();
    });
  });
}

async function waitUntilIdle(pid: number | undefined): Promise<void> {
  const deadline = performance.now() + IDLE.timeoutMs;
  for (let idleCount = 0; idleCount < 2 && performance.now() < deadline;) {
    const before = threadsCpuMs(pid);
    await pause(IDLE.intervalMs);
    idleCount = threadsCpuMs(pid) - before <= IDLE.maxCpuMs ? idleCount + 1 : 0;
  }
}

/**
 * A process of its own: makes VMs, and deletes them as `kubectl delete --all` does, but for its throttle: one DELETE
 * after another, each as soon as the one before is answered, and then until all are gone.
 */
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { createHttpTransport } from '#client/http.ts';
import { Informer } from '#client/informer.ts';
import { createClient } from '#client/rest-client.ts';
import { systemClock } from '#lib/clock.ts';
import { createLog } from '#lib/log.ts';
import { answerJobs } from '../jobs.ts';
import { JSON_FIELDS } from '../operations.ts';
import { pause } from '../pause.ts';
import { threadsCpuMs } from '../proc-files.ts';
import { RawConnection, type Target } from '../raw-h2.ts';
import { NAMESPACE, smallVm } from '../vms/manifests.ts';

export type VmDeletesJob =
  | { readonly kind: 'open'; readonly target: Target }
  | { readonly kind: 'make'; readonly names: readonly string[]; readonly running: boolean; readonly labels: Labels }
  /** Deletes of one VM that are not carried out. */
  | { readonly kind: 'rehearse'; readonly name: string; readonly times: number }
  | { readonly kind: 'delete'; readonly names: readonly string[] };

type Labels = Readonly<Record<string, string>>;

export interface Deletion {
  /** From the first DELETE until the last VM is gone. */
  readonly ms: number;
  /** Of the server, meanwhile. */
  readonly serverCpuMs: number;
}

const MAKERS = 8;
const PATH = `/apis/kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachines`;
/** Without any news for this long, it will not come to an end. */
const STALLED_MS = 60_000;
/** The server is at rest when it uses less than a tenth of a core; whatever happens, the next turn comes. */
const REST = { lookMs: 40, maxCpuMs: 4, timeoutMs: 5000 };

interface Open {
  readonly target: Target;
  readonly connection: RawConnection;
  readonly vms: Informer<VirtualMachine>;
}

let open: Promise<Open> | undefined;

answerJobs(async (job: VmDeletesJob): Promise<unknown> => {
  if (job.kind === 'open') return void (await (open = connect(job.target)));
  if (open === undefined) throw new Error(`Cannot ${job.kind} VMs: nobody said where`);
  if (job.kind === 'make') return make(await open, job);
  return job.kind === 'rehearse' ? rehearse(await open, job) : deleteAll(await open, job.names);
});

async function connect(target: Target): Promise<Open> {
  const access = {
    server: `https://${target.host}:${target.port}`,
    namespace: NAMESPACE,
    certificateAuthority: target.ca,
    clientCertificate: target.cert,
    clientKey: target.key,
    insecureSkipTlsVerify: false,
  };
  const reader = createClient(createHttpTransport(access, { userAgent: 'selfsame-bench', clock: systemClock }));
  const log = createLog('warn');
  const vms = new Informer({ reader, type: VIRTUAL_MACHINES, clock: systemClock, log, namespace: NAMESPACE });
  void vms.start({ signal: new AbortController().signal });
  await vms.synced();
  return { target, connection: await RawConnection.connect(target, JSON_FIELDS), vms };
}

/** Resolves when all of them run, or are known to be stopped. */
async function make({ target, vms }: Open, { names, running, labels }: VmDeletesJob & { kind: 'make' }): Promise<void> {
  const { spec, ...vm } = smallVm('');
  const left = [...names];
  const maker = async () => {
    const connection = await RawConnection.connect(target, JSON_FIELDS);
    for (let name = left.pop(); name !== undefined; name = left.pop()) {
      const runStrategy = running ? 'Always' : 'Halted';
      const object = { ...vm, metadata: { namespace: NAMESPACE, name, labels }, spec: { ...spec, runStrategy } };
      const { status, body } = await connection.ask('POST', PATH, Buffer.from(JSON.stringify(object)));
      if (status !== 201) throw new Error(`Cannot create VM ${name}: answered with ${status}: ${body.toString()}`);
    }
    connection.close();
  };
  const wanted = running ? 'Running' : 'Stopped';
  const made = all(vms, names, (vm) => vm?.status?.printableStatus === wanted);
  await Promise.all([made, ...Array.from({ length: MAKERS }, maker)]);
}

async function rehearse({ connection }: Open, { name, times }: VmDeletesJob & { kind: 'rehearse' }): Promise<void> {
  for (let time = 0; time < times; time++) {
    const { status, body } = await connection.ask('DELETE', `${PATH}/${name}?dryRun=All`);
    if (status !== 200) throw new Error(`Cannot rehearse: answered with ${status}: ${body.toString()}`);
  }
}

async function deleteAll({ target, connection, vms }: Open, names: readonly string[]): Promise<Deletion> {
  // What others left behind must not be counted here.
  await rest(target.pid);
  const [cpuBefore, from] = [threadsCpuMs(target.pid), performance.now()];
  const gone = all(vms, names, (vm) => vm === undefined);
  for (const name of names) {
    const { status, body } = await connection.ask('DELETE', `${PATH}/${name}`);
    if (status !== 200) throw new Error(`Cannot delete VM ${name}: answered with ${status}: ${body.toString()}`);
  }
  await gone;
  return { ms: performance.now() - from, serverCpuMs: threadsCpuMs(target.pid) - cpuBefore };
}

/** Resolves when each of them was seen to be so; throws when nothing happens any more. */
async function all(
  vms: Informer<VirtualMachine>,
  names: readonly string[],
  isSo: (vm: VirtualMachine | undefined) => boolean,
): Promise<void> {
  const left = new Set(names.map((name) => `${NAMESPACE}/${name}`));
  await new Promise<void>((resolve, reject) => {
    let newsAt = performance.now();
    const look = setInterval(() => {
      if (performance.now() - newsAt < STALLED_MS) return;
      reject(new Error(`${left.size} of ${names.length} VMs are not so far, and nothing happens any more`));
    }, STALLED_MS / 10);
    const leave = vms.onChange((key, { new: vm }) => {
      newsAt = performance.now();
      if (!isSo(vm) || !left.delete(key) || left.size > 0) return;
      clearInterval(look);
      leave();
      resolve();
    });
  });
}

async function rest(pid: number): Promise<void> {
  const deadline = performance.now() + REST.timeoutMs;
  for (let quiet = 0; quiet < 2 && performance.now() < deadline;) {
    const before = threadsCpuMs(pid);
    await pause(REST.lookMs);
    quiet = threadsCpuMs(pid) - before <= REST.maxCpuMs ? quiet + 1 : 0;
  }
}

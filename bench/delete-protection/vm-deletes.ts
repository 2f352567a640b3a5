/**
 * A process of its own: makes VMs in some namespaces, and deletes them by turns: one DELETE, and the next one, in another
 * namespace, when a watch has seen that VM go.
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
import { smallVm } from '../vms/manifests.ts';

/** `namespace/name`, as informers have it. */
type Key = string;

export type VmDeletesJob =
  | { readonly kind: 'open'; readonly target: Target }
  | { readonly kind: 'make'; readonly vms: readonly Key[]; readonly running: boolean; readonly labels: Labels }
  /** Deletes that are not carried out, of each in turn. */
  | { readonly kind: 'rehearse'; readonly vms: readonly Key[]; readonly times: number }
  /** One after the other, each until it is gone; tells how many milliseconds each took. */
  | { readonly kind: 'delete'; readonly vms: readonly Key[] };

type Labels = Readonly<Record<string, string>>;

const MAKERS = 8;
/** Without any news for this long, it will not come to an end. */
const STALLED_MS = 60_000;
/** The server is at rest when it uses less than a tenth of a core; whatever happens, the deletes begin. */
const REST = { lookMs: 40, maxCpuMs: 4, timeoutMs: 5000 };

interface Open {
  readonly target: Target;
  readonly connection: RawConnection;
  readonly seen: Informer<VirtualMachine>;
}

let open: Promise<Open> | undefined;

answerJobs(async (job: VmDeletesJob): Promise<unknown> => {
  if (job.kind === 'open') return void (await (open = connect(job.target)));
  if (open === undefined) throw new Error(`Cannot ${job.kind} VMs: nobody said where`);
  if (job.kind === 'make') return make(await open, job);
  return job.kind === 'rehearse' ? rehearse(await open, job) : deleteAll(await open, job.vms);
});

async function connect(target: Target): Promise<Open> {
  const access = {
    server: `https://${target.host}:${target.port}`,
    namespace: 'default',
    certificateAuthority: target.ca,
    clientCertificate: target.cert,
    clientKey: target.key,
    insecureSkipTlsVerify: false,
  };
  const reader = createClient(createHttpTransport(access, { userAgent: 'selfsame-bench', clock: systemClock }));
  const seen = new Informer({ reader, type: VIRTUAL_MACHINES, clock: systemClock, log: createLog('warn') });
  void seen.start({ signal: new AbortController().signal });
  await seen.synced();
  return { target, connection: await RawConnection.connect(target, JSON_FIELDS), seen };
}

const pathOf = (namespace: string) => `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines`;

function parsed(key: Key): { namespace: string; name: string } {
  const [namespace = '', name = ''] = key.split('/');
  return { namespace, name };
}

/** Resolves when all of them run, or are known to be stopped. */
async function make({ target, seen }: Open, { vms, running, labels }: VmDeletesJob & { kind: 'make' }): Promise<void> {
  const { spec, ...vm } = smallVm('');
  const left = [...vms];
  const maker = async () => {
    const connection = await RawConnection.connect(target, JSON_FIELDS);
    for (let key = left.pop(); key !== undefined; key = left.pop()) {
      const runStrategy = running ? 'Always' : 'Halted';
      const object = { ...vm, metadata: { ...parsed(key), labels }, spec: { ...spec, runStrategy } };
      const path = pathOf(parsed(key).namespace);
      const { status, body } = await connection.ask('POST', path, Buffer.from(JSON.stringify(object)));
      if (status !== 201) throw new Error(`Cannot create VM ${key}: answered with ${status}: ${body.toString()}`);
    }
    connection.close();
  };
  const wanted = running ? 'Running' : 'Stopped';
  const made = all(seen, vms, (vm) => vm?.status?.printableStatus === wanted);
  await Promise.all([made, ...Array.from({ length: MAKERS }, maker)]);
}

async function rehearse({ connection }: Open, { vms, times }: VmDeletesJob & { kind: 'rehearse' }): Promise<void> {
  for (let time = 0; time < times; time++) for (const key of vms) await sendDelete(connection, key, '?dryRun=All');
}

async function sendDelete(connection: RawConnection, key: Key, query = ''): Promise<void> {
  const { namespace, name } = parsed(key);
  const { status, body } = await connection.ask('DELETE', `${pathOf(namespace)}/${name}${query}`);
  if (status !== 200) throw new Error(`Cannot delete VM ${key}: answered with ${status}: ${body.toString()}`);
}

async function deleteAll({ target, connection, seen }: Open, vms: readonly Key[]): Promise<number[]> {
  // What making them left behind must not be counted here.
  await rest(target.pid);
  const times: number[] = [];
  for (const key of vms) {
    const from = performance.now();
    const gone = seen.until(() => seen.get(key) === undefined, { signal: AbortSignal.timeout(STALLED_MS) });
    await sendDelete(connection, key);
    if (!(await gone)) throw new Error(`VM ${key} was deleted and does not go`);
    times.push(performance.now() - from);
  }
  return times;
}

/** Resolves when each of them was seen to be so; throws when nothing happens any more. */
async function all(
  seen: Informer<VirtualMachine>,
  vms: readonly Key[],
  isSo: (vm: VirtualMachine | undefined) => boolean,
): Promise<void> {
  const left = new Set(vms);
  await new Promise<void>((resolve, reject) => {
    let newsAt = performance.now();
    const look = setInterval(() => {
      if (performance.now() - newsAt < STALLED_MS) return;
      reject(new Error(`${left.size} of ${vms.length} VMs are not so far, and nothing happens any more`));
    }, STALLED_MS / 10);
    const leave = seen.onChange((key, { new: vm }) => {
      newsAt = performance.now();
      if (!isSo(vm) || !left.delete(key) || left.size > 0) return;
      clearInterval(look);
      leave();
      resolve();
    });
  });
}

async function rest(pid: number | undefined): Promise<void> {
  const deadline = performance.now() + REST.timeoutMs;
  for (let quiet = 0; quiet < 2 && performance.now() < deadline;) {
    const before = threadsCpuMs(pid);
    await pause(REST.lookMs);
    quiet = threadsCpuMs(pid) - before <= REST.maxCpuMs ? quiet + 1 : 0;
  }
}

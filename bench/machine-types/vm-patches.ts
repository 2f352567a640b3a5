/**
 * A process of its own: makes stopped VMs, and gives each of them an old machine type, or a label, by a bare merge patch:
 * as many at a time and over as many connections as the Job that takes the types away again.
 */
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { answerJobs } from '../jobs.ts';
import { FIELDS, JSON_FIELDS } from '../operations.ts';
import { cpuMs } from '../proc-files.ts';
import { RawConnection, type Target } from '../raw-h2.ts';
import { NAMESPACE, smallVm } from '../vms/manifests.ts';

export interface VmPatchesJob {
  readonly kind: 'make' | Patched;
  readonly target: Target;
  readonly count: number;
}

/** A label leaves the spec as it is: no new generation. */
export type Patched = 'label' | 'type';

export interface Patches {
  readonly seconds: number;
  readonly serverCpuMs: number;
  readonly clientCores: number;
}

/** Of the Job, src/transition/transition-run.ts; its client has one connection for all. */
const IN_FLIGHT = 32;
const MERGE_FIELDS = { ...FIELDS, 'content-type': 'application/merge-patch+json' };
const OLD_TYPE = 'pc-q35-rhel8.2.0';
const PATH = `/apis/${VIRTUAL_MACHINES.group}/${VIRTUAL_MACHINES.version}/namespaces/${NAMESPACE}/${VIRTUAL_MACHINES.plural}`;

answerJobs(({ kind, target, count }: VmPatchesJob) =>
  kind === 'make' ? make(target, count) : patch(target, count, kind),
);

let turn = 0;

const nameOf = (index: number) => `old-${index}`;

async function make(target: Target, count: number): Promise<void> {
  const vm = smallVm('');
  const connection = await RawConnection.connect(target, JSON_FIELDS);
  await each(count, async (index) => {
    const metadata = { name: nameOf(index), namespace: NAMESPACE };
    const text = JSON.stringify({ ...vm, metadata, spec: { ...vm.spec, runStrategy: 'Halted' } });
    const { status, body } = await connection.ask('POST', PATH, Buffer.from(text));
    if (status !== 201) throw new Error(`Cannot create VM ${index}: answered with ${status}: ${body.toString()}`);
  });
  connection.close();
}

async function patch(target: Target, count: number, what: Patched): Promise<Patches> {
  const connection = await RawConnection.connect(target, MERGE_FIELDS);
  const body = Buffer.from(JSON.stringify(bodyOf(what)));
  const [serverBefore, ownBefore, from] = [cpuMs(target.pid), process.cpuUsage(), performance.now()];
  await each(count, async (index) => {
    const status = await patched(connection, `${PATH}/${nameOf(index)}`, body);
    if (status !== 200) throw new Error(`Cannot patch VM ${index}: answered with ${status}`);
  });
  const seconds = (performance.now() - from) / 1000;
  const used = process.cpuUsage(ownBefore);
  connection.close();
  return {
    seconds,
    serverCpuMs: cpuMs(target.pid) - serverBefore,
    clientCores: (used.user + used.system) / 1e6 / seconds,
  };
}

function bodyOf(what: Patched): object {
  if (what === 'label') return { metadata: { labels: { turn: String(turn++) } } };
  return { spec: { template: { spec: { domain: { machine: { type: OLD_TYPE } } } } } };
}

/** Only the status is looked at: what a general-purpose client does with the answer is not the server's. */
function patched(connection: RawConnection, path: string, body: Buffer): Promise<number> {
  return new Promise((resolve) => connection.request('PATCH', path, body, { onEnd: resolve }));
}

async function each(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
}

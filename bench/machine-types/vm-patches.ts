/**
 * A separate process: creates stopped VMs, and sets an old machine type or a label on each with a bare merge patch,
 * with as many requests in flight and connections as the Job that clears the types again.
 */
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { serveJobs } from '../jobs.ts';
import { FIELDS, JSON_FIELDS } from '../operations.ts';
import { cpuMs } from '../proc-files.ts';
import { RawConnection, type Target } from '../raw-h2.ts';
import { NAMESPACE, smallVm } from '../vms/manifests.ts';

export interface VmPatchesJob {
  readonly kind: 'make' | PatchedField;
  readonly target: Target;
  readonly count: number;
}

/** The patched field. A label does not change the spec, and so not the generation. */
export type PatchedField = 'label' | 'type';

export interface Patches {
  readonly seconds: number;
  readonly serverCpuMs: number;
  readonly clientCores: number;
}

/** As many as the Job has (src/transition/transition-run.ts), whose client has one connection. */
const IN_FLIGHT = 32;
const MERGE_FIELDS = { ...FIELDS, 'content-type': 'application/merge-patch+json' };
const OLD_TYPE = 'pc-q35-rhel8.2.0';
const PATH = `/apis/${VIRTUAL_MACHINES.group}/${VIRTUAL_MACHINES.version}/namespaces/${NAMESPACE}/${VIRTUAL_MACHINES.plural}`;

serveJobs(({ kind, target, count }: VmPatchesJob) =>
  kind === 'make' ? createVms(target, count) : patch(target, count, kind),
);

let round = 0;

const nameOf = (index: number) => `old-${index}`;

async function createVms(target: Target, count: number): Promise<void> {
  const vm = smallVm('');
  const connection = await RawConnection.connect(target, JSON_FIELDS);
  await forEachIndex(count, async (index) => {
    const metadata = { name: nameOf(index), namespace: NAMESPACE };
    const text = JSON.stringify({ ...vm, metadata, spec: { ...vm.spec, runStrategy: 'Halted' } });
    const { status, body } = await connection.exchange('POST', PATH, Buffer.from(text));
    if (status !== 201)
      throw new Error(`Cannot create VM ${index}: the response has status ${status}: ${body.toString()}`);
  });
  connection.close();
}

async function patch(target: Target, count: number, field: PatchedField): Promise<Patches> {
  const connection = await RawConnection.connect(target, MERGE_FIELDS);
  const body = Buffer.from(JSON.stringify(bodyOf(field)));
  const [serverBefore, ownBefore, from] = [cpuMs(target.pid), process.cpuUsage(), performance.now()];
  await forEachIndex(count, async (index) => {
    const status = await sendPatch(connection, `${PATH}/${nameOf(index)}`, body);
    if (status !== 200) throw new Error(`Cannot patch VM ${index}: the response has status ${status}`);
  });
  const seconds = (performance.now() - from) / 1000;
  const cpu = process.cpuUsage(ownBefore);
  connection.close();
  return {
    seconds,
    serverCpuMs: cpuMs(target.pid) - serverBefore,
    clientCores: (cpu.user + cpu.system) / 1e6 / seconds,
  };
}

function bodyOf(field: PatchedField): object {
  if (field === 'label') return { metadata: { labels: { round: String(round++) } } };
  return { spec: { template: { spec: { domain: { machine: { type: OLD_TYPE } } } } } };
}

/** Sends a patch and reads only the status: parsing the response would measure the client. */
function sendPatch(connection: RawConnection, path: string, body: Buffer): Promise<number> {
  return new Promise((resolve) => connection.request('PATCH', path, body, { onEnd: resolve }));
}

async function forEachIndex(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
}

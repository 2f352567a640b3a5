/**
 * Disk copies in QEMU: for each copy a new qcow2 image (two block nodes) and a backup job. All jobs of a set start in
 * one transaction, between two requests of the guest, so that they capture the same point in time.
 *
 *   (nothing) ──addTarget──► image ──startJobs──► job runs ──► job concluded ──closeTarget──► file complete
 *                                                                        └──── clearCopy, from any state ────► (nothing)
 *
 * Names are derived from the copy id, so that a later process finds its jobs. QEMU keeps concluded jobs until they are
 * dismissed. While a job runs, QEMU copies data before the guest overwrites it: the guest's write waits for that, and
 * QEMU 7.2 fails the write if the copy cannot be written (later versions can be configured to fail only the copy).
 */
import type { Clock } from '#lib/clock.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { copyFileName, copyName } from '#node/hypervisor/qemu/arguments/block-nodes.ts';
import { QmpError, type QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';
import { poll } from '#node/hypervisor/qemu/process/timing.ts';

/** Time for all pending requests to finish. */
const TRANSACTION_MS = 60_000;
const CREATE_MS = 30_000;
const CANCEL_MS = 30_000;
const POLL_INTERVAL_MS = 10;

interface CopyTarget {
  readonly copyId: string;
  /** The path as QEMU opens it. The file exists and is empty. */
  readonly filename: string;
  readonly bytes: number;
}

interface CopyJob {
  readonly copyId: string;
  /** The block node of the disk. */
  readonly source: string;
}

export interface JobInfo {
  readonly id: string;
  readonly status: string;
  readonly 'current-progress': number;
  readonly 'total-progress': number;
  readonly error?: string;
}

export async function readBlockJobs(qmp: QmpClient): Promise<ReadonlyMap<string, JobInfo>> {
  const jobs = (await qmp.execute('query-jobs')) as JobInfo[];
  return new Map(jobs.map((job) => [job.id, job]));
}

/** Creates an empty image of that size in the file, and opens it. */
export async function addTarget(qmp: QmpClient, clock: Clock, { copyId, filename, bytes }: CopyTarget): Promise<void> {
  const file = copyFileName(copyId);
  await qmp.execute('blockdev-add', { driver: 'file', 'node-name': file, filename });
  const job = createJobName(copyId);
  await qmp.execute('blockdev-create', { 'job-id': job, options: { driver: 'qcow2', file, size: bytes } });
  const created = await waitForConclusion(qmp, clock, job, CREATE_MS);
  await qmp.execute('job-dismiss', { id: job });
  if (created.error !== undefined)
    throw new HypervisorError(`QEMU cannot create an image for the copy: ${created.error}`);
  await qmp.execute('blockdev-add', targetOptions(copyId));
}

/** Starts all jobs at the same point in time, or none. */
export async function startJobs(
  qmp: QmpClient,
  jobs: readonly CopyJob[],
  { bytesPerSecond }: { bytesPerSecond: number | undefined },
): Promise<void> {
  const actions = jobs.map(({ copyId, source }) => ({
    type: 'blockdev-backup',
    data: {
      'job-id': copyName(copyId),
      device: source,
      target: copyName(copyId),
      sync: 'full',
      'auto-dismiss': false,
      ...(bytesPerSecond !== undefined && { speed: bytesPerSecond }),
    },
  }));
  await qmp.execute('transaction', { actions }, { timeoutMs: TRANSACTION_MS });
}

/** Closes the image of a concluded job. Everything is on disk when it resolves. May be repeated. */
export async function closeTarget(qmp: QmpClient, copyId: string): Promise<void> {
  const nodes = await readBlockNodes(qmp);
  // Only reopening reports a failed flush; closing alone does not.
  if (nodes.has(copyName(copyId))) {
    await qmp.execute('blockdev-reopen', { options: [{ ...targetOptions(copyId), 'read-only': true }] });
  }
  await removeNodes(qmp, copyId, nodes);
}

/** Removes a copy in any state, even if its job still runs. */
export async function clearCopy(qmp: QmpClient, clock: Clock, copyId: string): Promise<void> {
  const jobs = await readBlockJobs(qmp);
  for (const id of [createJobName(copyId), copyName(copyId)]) {
    const job = jobs.get(id);
    if (job === undefined) continue;
    if (job.status !== 'concluded') {
      // The job may conclude at the same moment and can then no longer be cancelled.
      await qmp.execute('job-cancel', { id }).catch(ignoreRefusal);
      await waitForConclusion(qmp, clock, id, CANCEL_MS);
    }
    await qmp.execute('job-dismiss', { id });
  }
  await removeNodes(qmp, copyId, await readBlockNodes(qmp));
}

/** Reports whether QEMU refused a command. Otherwise it is unknown whether QEMU executed it. */
export function isQemuRefusal(error: unknown): boolean {
  return !(error instanceof QmpError) || !['Disconnected', 'Timeout', 'Busy'].includes(error.class);
}

/** Ignores a refusal, for commands whose effect may exist already; rethrows other errors. */
export function ignoreRefusal(error: unknown): void {
  if (!isQemuRefusal(error)) throw error;
}

async function waitForConclusion(qmp: QmpClient, clock: Clock, id: string, timeoutMs: number): Promise<JobInfo> {
  const job = await poll(clock, { timeoutMs, everyMs: POLL_INTERVAL_MS }, async () => {
    const found = (await readBlockJobs(qmp)).get(id);
    return found?.status === 'concluded' ? found : undefined;
  });
  if (job === undefined) throw new HypervisorError(`QEMU's job "${id}" did not end within ${timeoutMs} ms`);
  return job;
}

export async function readBlockNodes(qmp: QmpClient): Promise<ReadonlySet<string>> {
  const nodes = (await qmp.execute('query-named-block-nodes', { flat: true })) as { 'node-name': string }[];
  return new Set(nodes.map((node) => node['node-name']));
}

async function removeNodes(qmp: QmpClient, copyId: string, nodes: ReadonlySet<string>): Promise<void> {
  for (const name of [copyName(copyId), copyFileName(copyId)]) {
    if (nodes.has(name)) await qmp.execute('blockdev-del', { 'node-name': name });
  }
}

/**
 * Returns the options of the image. Zeros are detected, because block devices and files without holes are copied in
 * full and the copy should be sparse.
 */
function targetOptions(copyId: string): object {
  return {
    driver: 'qcow2',
    'node-name': copyName(copyId),
    file: copyFileName(copyId),
    'detect-zeroes': 'on',
  };
}

function createJobName(copyId: string): string {
  return `create-${copyName(copyId)}`;
}

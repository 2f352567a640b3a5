/**
 * Mirrors the disks that move with a guest: for each a block node on the target's NBD server and a mirror job, which
 * copies all data and then follows the guest's writes.
 *
 *   (nothing) ──start──► job runs ──► ready: equal except for the last writes ──finish──► equal; (nothing)
 *                            └──────────────── clear, from any state ────────────────► (nothing)
 *
 * Names are derived from the device id, so that a later process finds them.
 */
import type { Clock } from '#lib/clock.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { MovingDisk } from '#node/hypervisor/migration.ts';
import { formatNodeName, isMirrorName, mirrorName } from '#node/hypervisor/qemu/arguments/block-nodes.ts';
import { pollOnEvents, type WaitContext } from '#node/hypervisor/qemu/monitor/event-signal.ts';
import { readBlockJobs, readBlockNodes, ignoreRefusal, type JobInfo } from '#node/hypervisor/qemu/disks/copy-jobs.ts';
import type { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';
import { poll } from '#node/hypervisor/qemu/process/timing.ts';

const FINISH_MS = 60_000;
const CANCEL_MS = 30_000;
const CONNECT_MS = 30_000;
const POLL_INTERVAL_MS = 50;

/** The target's NBD server, as `server` of a block node. */
interface MirrorTarget {
  readonly server: object;
  /** The name of QEMU's credentials object. */
  readonly tlsCreds: string | undefined;
}

export async function startMirrors(
  qmp: QmpClient,
  disks: readonly MovingDisk[],
  { server, tlsCreds }: MirrorTarget,
  { bytesPerSecond }: { bytesPerSecond: number },
): Promise<void> {
  const speed = bytesPerSecond === 0 ? 0 : Math.max(1, Math.floor(bytesPerSecond / disks.length));
  for (const { deviceId, overlay } of disks) {
    const name = mirrorName(deviceId);
    const node = {
      driver: 'nbd',
      'node-name': name,
      server,
      export: formatNodeName(deviceId),
      discard: 'unmap',
      ...(tlsCreds !== undefined && { 'tls-creds': tlsCreds }),
    };
    await qmp.execute('blockdev-add', node, { timeoutMs: CONNECT_MS });
    await qmp.execute('blockdev-mirror', {
      'job-id': name,
      device: formatNodeName(deviceId),
      target: name,
      sync: overlay ? 'top' : 'full',
      speed,
      'auto-dismiss': false,
    });
  }
}

/** Reports whether all jobs are ready. Throws if one has failed, because it does not recover. */
export function areReady(jobs: ReadonlyMap<string, JobInfo>, disks: readonly MovingDisk[]): boolean {
  return disks.every(({ deviceId }) => {
    const job = jobs.get(mirrorName(deviceId));
    if (job === undefined || job.status === 'concluded' || job.error !== undefined) {
      throw new HypervisorError(`the transfer of disk "${deviceId}" failed: ${job?.error ?? 'QEMU has no job for it'}`);
    }
    return job.status === 'ready';
  });
}

/** Sends the last writes of the disks and disconnects from the target. The guest must be paused. */
export async function finishMirrors(qmp: QmpClient, waiting: WaitContext, disks: readonly MovingDisk[]): Promise<void> {
  if (disks.length === 0) return;
  if (!areReady(await readBlockJobs(qmp), disks)) throw new HypervisorError('a disk has not been sent completely');
  // Cancelling a ready job completes it.
  for (const { deviceId } of disks) await qmp.execute('block-job-cancel', { device: mirrorName(deviceId) });
  const names = disks.map(({ deviceId }) => mirrorName(deviceId));
  const ended = await pollOnEvents(waiting, { timeoutMs: FINISH_MS, everyMs: POLL_INTERVAL_MS }, async () => {
    const jobs = await readBlockJobs(qmp);
    return names.every((name) => jobs.get(name)?.status === 'concluded') ? jobs : undefined;
  });
  if (ended === undefined) throw new HypervisorError(`the disks were not sent completely within ${FINISH_MS} ms`);
  for (const [i, name] of names.entries()) {
    const error = ended.get(name)?.error;
    if (error !== undefined) throw new HypervisorError(`the transfer of disk "${disks[i]?.deviceId}" failed: ${error}`);
    await qmp.execute('job-dismiss', { id: name });
    await qmp.execute('blockdev-del', { 'node-name': name });
  }
}

/** Removes all mirror jobs and nodes, in any state. */
export async function clearMirrors(qmp: QmpClient, clock: Clock): Promise<void> {
  const readMirrorJobs = async () => [...(await readBlockJobs(qmp)).values()].filter(({ id }) => isMirrorName(id));
  for (const { id, status } of await readMirrorJobs()) {
    if (status !== 'concluded') await qmp.execute('block-job-cancel', { device: id, force: true }).catch(ignoreRefusal);
  }
  const isCleared = await poll(clock, { timeoutMs: CANCEL_MS, everyMs: POLL_INTERVAL_MS }, async () => {
    const jobs = await readMirrorJobs();
    for (const { id, status } of jobs) if (status === 'concluded') await qmp.execute('job-dismiss', { id });
    return jobs.every(({ status }) => status === 'concluded') ? true : undefined;
  });
  if (isCleared === undefined)
    throw new HypervisorError(`the disks are still being sent ${CANCEL_MS} ms after the cancellation`);
  for (const name of await readBlockNodes(qmp)) {
    if (isMirrorName(name)) await qmp.execute('blockdev-del', { 'node-name': name });
  }
}

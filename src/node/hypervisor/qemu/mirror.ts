/**
 * Disks that go along, as QEMU does it: for each a block node on the target's NBD server and a mirror job, which copies
 * all that is there and then follows what the guest writes.
 *
 *   (nothing) ──start──► job runs ──► ready: both are the same but for the last moment ──finish──► the same; (nothing)
 *                            └──────────────── clear, from anywhere ────────────────► (nothing)
 *
 * Names are derived from the id of the device: whoever comes later finds them again.
 */
import type { Clock } from '#lib/clock.ts';
import { HypervisorError } from '../hypervisor.ts';
import type { MovingDisk } from '../migration.ts';
import { formatNodeName, isMirrorName, mirrorName } from './arguments/block-nodes.ts';
import { whenRung, type Waiting } from './bell.ts';
import { readJobs, readNodes, unlessLost, type JobInfo } from './copy-jobs.ts';
import type { QmpClient } from './qmp.ts';
import { poll } from './timing.ts';

const FINISH_MS = 60_000;
const CANCEL_MS = 30_000;
const CONNECT_MS = 30_000;
const LOOK_EVERY_MS = 50;

/** Where the disks go: as `server` of a block node. */
export interface MirrorTarget {
  readonly server: object;
  /** The name of an object of QEMU. */
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

/** Throws where one has failed: it never comes back by itself. */
export function areReady(jobs: ReadonlyMap<string, JobInfo>, disks: readonly MovingDisk[]): boolean {
  return disks.every(({ deviceId }) => {
    const job = jobs.get(mirrorName(deviceId));
    if (job === undefined || job.status === 'concluded' || job.error !== undefined) {
      throw new HypervisorError(`disk "${deviceId}" cannot be sent: ${job?.error ?? 'its job is gone'}`);
    }
    return job.status === 'ready';
  });
}

/** While the guest stands still: sends the last of them, and lets go of the target. */
export async function finishMirrors(qmp: QmpClient, waiting: Waiting, disks: readonly MovingDisk[]): Promise<void> {
  if (disks.length === 0) return;
  if (!areReady(await readJobs(qmp), disks)) throw new HypervisorError('a disk has not been sent yet');
  // Of one that is ready, this is its regular end.
  for (const { deviceId } of disks) await qmp.execute('block-job-cancel', { device: mirrorName(deviceId) });
  const names = disks.map(({ deviceId }) => mirrorName(deviceId));
  const ended = await whenRung(waiting, { timeoutMs: FINISH_MS, everyMs: LOOK_EVERY_MS }, async () => {
    const jobs = await readJobs(qmp);
    return names.every((name) => jobs.get(name)?.status === 'concluded') ? jobs : undefined;
  });
  if (ended === undefined) throw new HypervisorError(`the last of its disks was not sent within ${FINISH_MS} ms`);
  for (const [i, name] of names.entries()) {
    const error = ended.get(name)?.error;
    if (error !== undefined) throw new HypervisorError(`disk "${disks[i]?.deviceId}" cannot be sent: ${error}`);
    await qmp.execute('job-dismiss', { id: name });
    await qmp.execute('blockdev-del', { 'node-name': name });
  }
}

/** Whatever there is of them. */
export async function clearMirrors(qmp: QmpClient, clock: Clock): Promise<void> {
  const left = async () => [...(await readJobs(qmp)).values()].filter(({ id }) => isMirrorName(id));
  for (const { id, status } of await left()) {
    if (status !== 'concluded') await qmp.execute('block-job-cancel', { device: id, force: true }).catch(unlessLost);
  }
  const isCleared = await poll(clock, { timeoutMs: CANCEL_MS, everyMs: LOOK_EVERY_MS }, async () => {
    const jobs = await left();
    for (const { id, status } of jobs) if (status === 'concluded') await qmp.execute('job-dismiss', { id });
    return jobs.every(({ status }) => status === 'concluded') ? true : undefined;
  });
  if (isCleared === undefined) throw new HypervisorError(`its disks are still being sent after ${CANCEL_MS} ms`);
  for (const name of await readNodes(qmp)) {
    if (isMirrorName(name)) await qmp.execute('blockdev-del', { 'node-name': name });
  }
}

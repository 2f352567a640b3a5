/**
 * The source side of a migration in QEMU. Disks are sent first, because they are large; then memory, in rounds, until
 * little is left; then QEMU pauses the guest (pre-switchover) and waits for us.
 */
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { MovingDisk, OutgoingMigration, SendOptions, SendProgress } from '#node/hypervisor/migration.ts';
import { pollOnEvents } from '#node/hypervisor/qemu/monitor/event-signal.ts';
import { readBlockJobs, type JobInfo } from '#node/hypervisor/qemu/disks/copy-jobs.ts';
import {
  installKey,
  formatEndpointAddress,
  releaseSockets,
  reachableAddress,
  parseEndpointAddress,
  type EndpointAddress,
  type GuestMigrationContext,
} from '#node/hypervisor/qemu/migration/migration-endpoint.ts';
import { isMirrorName } from '#node/hypervisor/qemu/arguments/block-nodes.ts';
import {
  checkMigrationInfo,
  readMigrationInfo,
  waitUntilCompleted,
  type MigrationInfo,
} from '#node/hypervisor/qemu/migration/migrate-status.ts';
import { areReady, finishMirrors, startMirrors } from '#node/hypervisor/qemu/disks/mirror.ts';
import type { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';
import type { FileAccess } from '#node/hypervisor/qemu/process/file-access.ts';

const PROGRESS_MS = 500;
const COMPLETE_MS = 60_000;
const DOWNTIME_MS = 300;
/** The caller limits the duration with its signal. */
const NO_LIMIT_MS = Number.POSITIVE_INFINITY;
const BYTES_PER_MEGABIT = 125_000;

/** Sends the guest until it is paused for the switchover. After a failure, abort-send.ts cleans up. */
export async function sendGuest(
  qmp: QmpClient,
  context: GuestMigrationContext,
  { endpoint, disks, bytesPerSecond, autoConverge }: OutgoingMigration,
  options: SendOptions,
): Promise<void> {
  const { signal } = options;
  const [memory, nbd] = [
    parseEndpointAddress(endpoint.memory),
    endpoint.disks === undefined ? undefined : parseEndpointAddress(endpoint.disks),
  ];
  const tlsCreds =
    endpoint.secret === undefined
      ? undefined
      : await installKey(qmp, endpoint.secret, { ...context, endpoint: 'client' });
  await prepareToSend(qmp, { tlsCreds, bytesPerSecond, autoConverge });
  if (disks.length > 0) {
    if (nbd === undefined) throw new HypervisorError('the target has no endpoint for disks');
    const server = await reachableAddress(nbd, 'disks', context);
    await startMirrors(qmp, disks, { server, tlsCreds }, { bytesPerSecond });
    await followProgress(qmp, context, disks, options, ({ jobs }) => areReady(jobs, disks));
  }
  signal.throwIfAborted();
  await qmp.execute('migrate', { uri: formatEndpointAddress(await reachableAddress(memory, 'memory', context)) });
  await followProgress(qmp, context, disks, options, ({ info, jobs }) => {
    checkMigrationInfo(info);
    areReady(jobs, disks);
    return info.status === 'pre-switchover';
  });
}

/** Sends the last part, after sendGuest. Everything has been sent when it resolves. */
export async function finishSend(
  qmp: QmpClient,
  context: GuestMigrationContext,
  disks: readonly MovingDisk[],
): Promise<void> {
  await finishMirrors(qmp, context, disks);
  await qmp.execute('migrate-continue', { state: 'pre-switchover' });
  await waitUntilCompleted(qmp, context, { timeoutMs: COMPLETE_MS });
}

export async function releaseEndpoint(files: FileAccess, addresses: readonly (string | undefined)[]): Promise<void> {
  await releaseSockets(
    files,
    addresses.flatMap((text): EndpointAddress[] => (text === undefined ? [] : [parseEndpointAddress(text)])),
  );
}

/** Sets all parameters each time, because QEMU keeps those of an earlier migration. */
async function prepareToSend(
  qmp: QmpClient,
  {
    tlsCreds,
    bytesPerSecond,
    autoConverge,
  }: Pick<OutgoingMigration, 'bytesPerSecond' | 'autoConverge'> & {
    tlsCreds: string | undefined;
  },
): Promise<void> {
  const capabilities = {
    events: true,
    'late-block-activate': true,
    'pause-before-switchover': true,
    'auto-converge': autoConverge,
  };
  await qmp.execute('migrate-set-capabilities', {
    capabilities: Object.entries(capabilities).map(([capability, state]) => ({ capability, state })),
  });
  await qmp.execute('migrate-set-parameters', {
    'max-bandwidth': bytesPerSecond === 0 ? Number.MAX_SAFE_INTEGER : bytesPerSecond,
    'downtime-limit': DOWNTIME_MS,
    'tls-creds': tlsCreds ?? '',
    'tls-hostname': '',
  });
}

interface SendStatus {
  readonly info: MigrationInfo;
  readonly jobs: ReadonlyMap<string, JobInfo>;
}

async function followProgress(
  qmp: QmpClient,
  context: GuestMigrationContext,
  disks: readonly MovingDisk[],
  { signal, onProgress }: SendOptions,
  isDone: (status: SendStatus) => boolean,
): Promise<void> {
  const { clock } = context;
  let reportedAt = Number.NEGATIVE_INFINITY;
  await pollOnEvents(context, { timeoutMs: NO_LIMIT_MS, everyMs: PROGRESS_MS, signal }, async () => {
    const info = await readMigrationInfo(qmp);
    const jobs = disks.length === 0 ? NO_JOBS : await readBlockJobs(qmp);
    const done = isDone({ info, jobs });
    if (done || clock.elapsed() - reportedAt >= PROGRESS_MS) {
      reportedAt = clock.elapsed();
      onProgress?.(sendProgress({ info, jobs }));
    }
    return done || undefined;
  });
}

const NO_JOBS: ReadonlyMap<string, JobInfo> = new Map();

/** Returns the progress of disks and memory together. */
function sendProgress({ info: { ram }, jobs }: SendStatus): SendProgress {
  const mirrors = [...jobs.values()].filter(({ id }) => isMirrorName(id));
  const sum = (of: (job: JobInfo) => number) => mirrors.reduce((all, job) => all + of(job), 0);
  const [diskDoneBytes, diskTotalBytes] = [sum((job) => job['current-progress']), sum((job) => job['total-progress'])];
  return {
    processedBytes: diskDoneBytes + (ram?.transferred ?? 0),
    remainingBytes: Math.max(0, diskTotalBytes - diskDoneBytes) + (ram?.remaining ?? 0),
    totalBytes: diskTotalBytes + (ram?.total ?? 0),
    bytesPerSecond: Math.round((ram?.mbps ?? 0) * BYTES_PER_MEGABIT),
    memoryRounds: ram?.['dirty-sync-count'] ?? 0,
  };
}

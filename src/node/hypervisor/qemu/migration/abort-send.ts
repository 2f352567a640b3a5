/** Aborts a migration at its source, whatever QEMU is doing, also for the migration of an earlier process. */
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { pollOnEvents } from '#node/hypervisor/qemu/monitor/event-signal.ts';
import { ignoreRefusal } from '#node/hypervisor/qemu/disks/copy-jobs.ts';
import { uninstallKey } from '#node/hypervisor/qemu/migration/migration-endpoint.ts';
import { hasMigrationEnded, readMigrationInfo } from '#node/hypervisor/qemu/migration/migrate-status.ts';
import { isPausedByMigration } from '#node/hypervisor/qemu/migration/migration-record.ts';
import { clearMirrors } from '#node/hypervisor/qemu/disks/mirror.ts';
import type { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';
import { parseRunState } from '#node/hypervisor/qemu/monitor/run-state.ts';
import type { GuestMigrationContext } from '#node/hypervisor/qemu/migration/migration-endpoint.ts';

const CANCEL_MS = 30_000;
const POLL_INTERVAL_MS = 50;

/** Aborts the migration. When it resolves, the guest runs if `goesOn` is set. May be repeated. */
export async function abortSend(
  qmp: QmpClient,
  context: GuestMigrationContext,
  { goesOn }: { goesOn: boolean },
): Promise<void> {
  await cancelMigration(qmp, context);
  await clearMirrors(qmp, context.clock);
  await uninstallKey(qmp, context.dir);
  if (goesOn) await resumeAfterMigration(qmp, context);
}

/**
 * Resumes a guest that the migration paused. QEMU resumes it by itself only if the migration did not complete. For a moment
 * after the end of a migration, QEMU is not ready to continue.
 */
export async function resumeAfterMigration(qmp: QmpClient, context: GuestMigrationContext): Promise<void> {
  const found = await pollOnEvents(context, { timeoutMs: CANCEL_MS, everyMs: POLL_INTERVAL_MS }, async () => {
    const answer = await qmp.execute('query-status');
    return (answer as { status: string }).status === 'finish-migrate' ? undefined : parseRunState(answer);
  });
  if (found === undefined) throw new HypervisorError(`QEMU has not finished the migration after ${CANCEL_MS} ms`);
  if (isPausedByMigration(found)) await qmp.execute('cont');
}

async function cancelMigration(qmp: QmpClient, context: GuestMigrationContext): Promise<void> {
  if (hasMigrationEnded(await readMigrationInfo(qmp))) return;
  // The migration may complete at the same moment, which ends it, too.
  await qmp.execute('migrate_cancel').catch(ignoreRefusal);
  const over = await pollOnEvents(context, { timeoutMs: CANCEL_MS, everyMs: POLL_INTERVAL_MS }, async () =>
    hasMigrationEnded(await readMigrationInfo(qmp)) ? true : undefined,
  );
  if (over === undefined) throw new HypervisorError(`QEMU is still migrating ${CANCEL_MS} ms after the cancellation`);
}

/** Aborts a migration at its source, whatever QEMU is doing, also for the migration of an earlier process. */
import { HypervisorError } from '../hypervisor.ts';
import { whenRung } from './bell.ts';
import { unlessLost } from './copy-jobs.ts';
import { dropKey } from './door.ts';
import { isOver, readMigrate } from './migrate-status.ts';
import { standsStill } from './migration-record.ts';
import { clearMirrors } from './mirror.ts';
import type { QmpClient } from './qmp.ts';
import { runState } from './run-state.ts';
import type { MovingContext } from './send.ts';

const CANCEL_MS = 30_000;
const LOOK_EVERY_MS = 50;

/** Aborts the migration. When it resolves, the guest runs if `goesOn` is set. May be repeated. */
export async function takeBackGuest(
  qmp: QmpClient,
  context: MovingContext,
  { goesOn }: { goesOn: boolean },
): Promise<void> {
  await cancelMigrate(qmp, context);
  await clearMirrors(qmp, context.clock);
  await dropKey(qmp, context.dir);
  if (goesOn) await goOn(qmp);
}

/** Resumes a guest that the migration paused. QEMU resumes it by itself only if the migration did not complete. */
export async function goOn(qmp: QmpClient): Promise<void> {
  if (standsStill(runState(await qmp.execute('query-status')))) await qmp.execute('cont');
}

async function cancelMigrate(qmp: QmpClient, context: MovingContext): Promise<void> {
  if (isOver(await readMigrate(qmp))) return;
  // The migration may complete at the same moment, which ends it, too.
  await qmp.execute('migrate_cancel').catch(unlessLost);
  const over = await whenRung(context, { timeoutMs: CANCEL_MS, everyMs: LOOK_EVERY_MS }, async () =>
    isOver(await readMigrate(qmp)) ? true : undefined,
  );
  if (over === undefined) throw new HypervisorError(`QEMU is still migrating ${CANCEL_MS} ms after the cancellation`);
}

/** The state of a migration as QEMU reports it, on either side. */
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { pollOnEvents, type WaitContext } from '#node/hypervisor/qemu/monitor/event-signal.ts';
import type { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';

export interface MigrationInfo {
  /** Absent if there was no migration. */
  readonly status?: string;
  readonly 'error-desc'?: string;
  readonly ram?: {
    readonly transferred: number;
    readonly remaining: number;
    readonly total: number;
    readonly mbps: number;
    readonly 'dirty-sync-count': number;
  };
}

const POLL_INTERVAL_MS = 100;
const ANSWER_MS = 60_000;
/** States in which the migration has ended. */
const ENDED_STATES: ReadonlySet<string> = new Set(['none', 'completed', 'failed', 'cancelled']);

export async function readMigrationInfo(qmp: QmpClient): Promise<MigrationInfo> {
  // QEMU does not answer while it sends the last part of a guest.
  return (await qmp.execute('query-migrate', undefined, { timeoutMs: ANSWER_MS })) as MigrationInfo;
}

export function hasMigrationEnded({ status = 'none' }: MigrationInfo): boolean {
  return ENDED_STATES.has(status);
}

/** Throws QEMU's error if the migration failed or was cancelled. */
export function checkMigrationInfo(info: MigrationInfo): void {
  const { status, 'error-desc': reason } = info;
  if (status !== 'failed' && status !== 'cancelled') return;
  throw new HypervisorError(`the migration ${status === 'failed' ? 'failed' : 'was cancelled'}${formatReason(reason)}`);
}

/** Throws if the migration fails or takes longer than the timeout. */
export async function waitUntilCompleted(
  qmp: QmpClient,
  waiting: WaitContext,
  { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal | undefined },
): Promise<void> {
  const done = await pollOnEvents(waiting, { timeoutMs, everyMs: POLL_INTERVAL_MS, signal }, async () => {
    const info = await readMigrationInfo(qmp);
    checkMigrationInfo(info);
    return info.status === 'completed' ? true : undefined;
  });
  if (done === undefined) throw new HypervisorError(`the migration did not complete within ${timeoutMs} ms`);
}

function formatReason(reason: string | undefined): string {
  return reason === undefined ? '' : `: ${reason}`;
}

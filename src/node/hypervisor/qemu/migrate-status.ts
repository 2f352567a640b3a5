/** The state of a migration as QEMU reports it, on either side. */
import { HypervisorError } from '../hypervisor.ts';
import { whenRung, type Waiting } from './bell.ts';
import type { QmpClient } from './qmp.ts';

export interface MigrateInfo {
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

const LOOK_EVERY_MS = 100;
const ANSWER_MS = 60_000;
/** States in which the migration has ended. */
const OVER: ReadonlySet<string> = new Set(['none', 'completed', 'failed', 'cancelled']);

export async function readMigrate(qmp: QmpClient): Promise<MigrateInfo> {
  // QEMU does not answer while it sends the last part of a guest.
  return (await qmp.execute('query-migrate', undefined, { timeoutMs: ANSWER_MS })) as MigrateInfo;
}

export function isOver({ status = 'none' }: MigrateInfo): boolean {
  return OVER.has(status);
}

/** Throws QEMU's error if the migration failed or was cancelled. */
export function checkMigrate(info: MigrateInfo): void {
  const { status, 'error-desc': reason } = info;
  if (status !== 'failed' && status !== 'cancelled') return;
  throw new HypervisorError(`the migration ${status === 'failed' ? 'failed' : 'was cancelled'}${tail(reason)}`);
}

/** Throws if the migration fails or takes longer than the timeout. */
export async function untilCompleted(
  qmp: QmpClient,
  waiting: Waiting,
  { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal | undefined },
): Promise<void> {
  const done = await whenRung(waiting, { timeoutMs, everyMs: LOOK_EVERY_MS, signal }, async () => {
    const info = await readMigrate(qmp);
    checkMigrate(info);
    return info.status === 'completed' ? true : undefined;
  });
  if (done === undefined) throw new HypervisorError(`the migration did not complete within ${timeoutMs} ms`);
}

function tail(reason: string | undefined): string {
  return reason === undefined ? '' : `: ${reason}`;
}

/** What QEMU says about the migration under way, on either side. */
import { HypervisorError } from '../hypervisor.ts';
import { whenRung, type Waiting } from './bell.ts';
import type { QmpClient } from './qmp.ts';

export interface MigrateInfo {
  /** Absent where there was never one. */
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
/** In which QEMU does nothing about it any more. */
const OVER: ReadonlySet<string> = new Set(['none', 'completed', 'failed', 'cancelled']);

export async function readMigrate(qmp: QmpClient): Promise<MigrateInfo> {
  // While it sends the last of a guest, QEMU answers nobody.
  return (await qmp.execute('query-migrate', undefined, { timeoutMs: ANSWER_MS })) as MigrateInfo;
}

export function isOver({ status = 'none' }: MigrateInfo): boolean {
  return OVER.has(status);
}

/** Throws where it has failed, with QEMU's words for it. */
export function checkMigrate(info: MigrateInfo): void {
  const { status, 'error-desc': reason } = info;
  if (status !== 'failed' && status !== 'cancelled') return;
  throw new HypervisorError(`the migration has ${status === 'failed' ? 'failed' : 'been cancelled'}${tail(reason)}`);
}

/** Throws where it fails, or where it takes longer. */
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
  if (done === undefined) throw new HypervisorError(`the last of it was not there after ${timeoutMs} ms`);
}

function tail(reason: string | undefined): string {
  return reason === undefined ? '' : `: ${reason}`;
}

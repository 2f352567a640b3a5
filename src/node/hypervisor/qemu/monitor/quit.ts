/** Ends a QEMU process. */
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { DetachedProcess } from '#node/hypervisor/qemu/process/process.ts';
import type { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';

const QUIT_ANSWER_MS = 2000;
const QUIT_MS = 10_000;
const KILL_MS = 10_000;

/** Asks QEMU to quit, so that it flushes its disks; kills it if it does not. */
export async function quitOrKill(qemu: DetachedProcess, qmp: QmpClient | undefined): Promise<void> {
  const quitting = qmp?.execute('quit', undefined, { timeoutMs: QUIT_ANSWER_MS });
  // QEMU may close the connection before it answers.
  await quitting?.catch(() => undefined);
  if (quitting !== undefined && (await qemu.waitForExit(QUIT_MS))) return;
  await killQemu(qemu);
}

export async function killQemu(qemu: DetachedProcess): Promise<void> {
  await qemu.kill('SIGKILL');
  if (!(await qemu.waitForExit(KILL_MS)))
    throw new HypervisorError(`process ${qemu.identity.pid} did not exit within ${KILL_MS} ms after SIGKILL`);
}

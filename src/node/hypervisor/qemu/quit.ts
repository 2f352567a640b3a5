/** The end of a QEMU that we want to end. */
import { HypervisorError } from '../hypervisor.ts';
import type { OutlivingProcess } from './process.ts';
import type { QmpClient } from './qmp.ts';

const QUIT_ANSWER_MS = 2000;
const QUIT_MS = 10_000;
const KILL_MS = 10_000;

/** Rather than with a signal: it writes out what its disks have in memory. Where it cannot be asked, with one. */
export async function quitOrKill(qemu: OutlivingProcess, qmp: QmpClient | undefined): Promise<void> {
  const asked = qmp?.execute('quit', undefined, { timeoutMs: QUIT_ANSWER_MS });
  // It may hang up before it answers.
  await asked?.catch(() => undefined);
  if (asked !== undefined && (await qemu.gone(QUIT_MS))) return;
  await killQemu(qemu);
}

export async function killQemu(qemu: OutlivingProcess): Promise<void> {
  await qemu.kill('SIGKILL');
  if (!(await qemu.gone(KILL_MS))) throw new HypervisorError(`process ${qemu.identity.pid} does not die`);
}

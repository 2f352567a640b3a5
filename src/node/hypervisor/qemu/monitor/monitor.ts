/** Connects to the monitor of a QEMU that has just started, or whose connection was lost. */
import type { Clock } from '#lib/clock.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import {
  findFirstError,
  findFirstErrorLine,
  findRefusedOption,
  isPermanentError,
  type RefusedOption,
} from '#node/hypervisor/qemu/process/process-log.ts';
import { QMP_SOCKET, type DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import type { DetachedProcess } from '#node/hypervisor/qemu/process/process.ts';
import { QmpClient, type QmpOptions } from '#node/hypervisor/qemu/monitor/qmp.ts';
import { poll } from '#node/hypervisor/qemu/process/timing.ts';

const PROGRAM = 'qemu-system-x86_64';
const POLL_INTERVAL_MS = 5;
/** Time from closing its socket to its exit. */
const EXIT_MS = 2000;

interface MonitorOptions extends Pick<QmpOptions, 'onEvent' | 'onClose'> {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/**
 * Connects to the monitor. If QEMU has exited, the error contains QEMU's own text. `onClose` is called only for a
 * connection that was open.
 */
export async function openMonitor(
  dir: DomainDir,
  qemu: DetachedProcess,
  { clock, timeoutMs, signal, onEvent, onClose }: MonitorOptions,
): Promise<QmpClient> {
  const socket = await poll(clock, { timeoutMs, everyMs: POLL_INTERVAL_MS }, async () => {
    signal?.throwIfAborted();
    if (!(await qemu.isAlive())) throw await exitError(dir, qemu);
    return dir.connect(QMP_SOCKET).catch(() => undefined);
  });
  if (socket === undefined) throw new HypervisorError(`QEMU did not open its monitor within ${timeoutMs} ms`);
  let isOpen = false;
  const closed = () => {
    if (isOpen) onClose?.();
  };
  try {
    const qmp = await QmpClient.open(socket, { clock, greetingTimeoutMs: timeoutMs, onEvent, onClose: closed });
    isOpen = true;
    // QEMU may have closed the connection before `isOpen` was set, so that onClose was not called.
    if (qmp.isClosed) throw new HypervisorError('QEMU closed the connection');
    return qmp;
  } catch (error) {
    if (await qemu.waitForExit(EXIT_MS)) throw await exitError(dir, qemu);
    throw error;
  }
}

/** Returns the error of a QEMU that has exited, or of its TPM without which it did not start. */
export async function exitError(dir: DomainDir, qemu?: DetachedProcess): Promise<HypervisorError> {
  const log = await readLog(dir);
  const errorText = await readQemuError(dir);
  return new QemuExitError(qemuExitText(qemu, errorText), {
    permanent: isPermanentError(errorText),
    option: findRefusedOption(findFirstErrorLine(log, PROGRAM)),
  });
}

/** QEMU has exited. */
export class QemuExitError extends HypervisorError {
  /** The option that QEMU refused, if it named one. */
  readonly option: RefusedOption | undefined;

  constructor(message: string, options: { permanent: boolean; option: RefusedOption | undefined }) {
    super(message, options);
    this.option = options.option;
  }
}

export async function readQemuError(dir: DomainDir): Promise<string> {
  const own = findFirstError(await readLog(dir, 'qemu.log'), PROGRAM);
  if (own !== '') return own;
  const ofTpm = findFirstError(await readLog(dir, 'swtpm.log'), 'swtpm');
  return ofTpm === '' ? '' : `swtpm: ${ofTpm}`;
}

function readLog(dir: DomainDir, name: 'qemu.log' | 'swtpm.log' = 'qemu.log'): Promise<string> {
  return dir.readLog(name).catch(() => '');
}

export function qemuExitText(qemu: DetachedProcess | undefined, errorText: string): string {
  return `QEMU ${qemu?.exitText() ?? 'has exited'}${errorText === '' ? '' : `: ${errorText}`}`;
}

/**
 * Starts the software TPM of a QEMU. swtpm exits by itself when QEMU disconnects; before that the caller has to end it.
 */
import { rmdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '#lib/clock.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { TPM_SOCKET, TPM_STATE, type DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import { findFirstError } from '#node/hypervisor/qemu/process/process-log.ts';
import { spawnDetached, type DetachedProcess } from '#node/hypervisor/qemu/process/process.ts';
import { poll } from '#node/hypervisor/qemu/process/timing.ts';

const READY_TIMEOUT_MS = 10_000;
const POLL_INTERVAL_MS = 5;

interface SwtpmOptions {
  readonly binary: string;
  readonly clock: Clock;
  /** The absolute path of its persistent state; undefined if the state ends with the domain. */
  readonly stateDirectory?: string | undefined;
}

/** All paths are relative to run/: an arbitrary path could contain a comma, which ends the option. */
function swtpmArguments(id: string): string[] {
  return [
    ...['socket', '--tpm2', '--tpmstate', `dir=${TPM_STATE},mode=0600`],
    ...['--ctrl', `type=unixio,path=${TPM_SOCKET},mode=0600`],
    ...['--flags', 'startup-clear', '--terminate', '--pid', swtpmMarker(id)],
  ];
}

/** The descriptor of swtpm's log for `withSwtpm`. */
const LOG_FD = 3;

/**
 * Returns a command that starts swtpm in the background, waits until QEMU can connect, and becomes QEMU. Descriptor 3 is
 * the log of swtpm. The persistent state must be at run/tpm.
 */
export function withSwtpm(id: string, binary: string, qemu: readonly string[]): string[] {
  const script =
    `"$0" ${swtpmArguments(id).join(' ')} >&${LOG_FD} 2>&${LOG_FD} ${LOG_FD}>&- & ` +
    `while [ ! -S ${TPM_SOCKET} ]; do kill -0 $! 2>/dev/null || exit 1; sleep 0.01; done; exec "$@" ${LOG_FD}>&-`;
  return ['sh', '-c', script, binary, ...qemu];
}

/**
 * Starts swtpm as our own user. Resolves when QEMU can connect. `started` is called before, so that the caller can end
 * the process after a failure.
 */
export async function startSwtpm(
  dir: DomainDir,
  { binary, clock, stateDirectory }: SwtpmOptions,
  started: (swtpm: DetachedProcess) => void,
): Promise<void> {
  if (stateDirectory !== undefined) {
    await rmdir(join(dir.run, TPM_STATE));
    await symlink(stateDirectory, join(dir.run, TPM_STATE));
  }
  const log = await dir.openLog('swtpm.log');
  let swtpm: DetachedProcess;
  try {
    const args = swtpmArguments(dir.id);
    swtpm = await spawnDetached({ command: binary, args, cwd: dir.run, logFd: log.fd }, clock);
  } finally {
    await log.close();
  }
  started(swtpm);
  const outcome = await poll(clock, { timeoutMs: READY_TIMEOUT_MS, everyMs: POLL_INTERVAL_MS }, async () => {
    if (await dir.hasSocket(TPM_SOCKET)) return 'ready';
    return (await swtpm.isAlive()) ? undefined : 'ended';
  });
  if (outcome === 'ready') return;
  const errorText = findFirstError(await dir.readLog('swtpm.log'), 'swtpm');
  throw new HypervisorError(`swtpm ${swtpm.exitText() ?? 'is not ready'}${errorText === '' ? '' : `: ${errorText}`}`);
}

/** Returns the argument by which a swtpm is found if its pid was not recorded. */
export function swtpmMarker(id: string): string {
  return `file=${id}-swtpm.pid`;
}

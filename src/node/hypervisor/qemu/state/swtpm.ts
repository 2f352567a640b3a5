/**
 * Starts the software TPM of a QEMU. swtpm exits by itself when QEMU disconnects; before that the caller has to end it.
 */
import type { Clock } from '#lib/clock.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { TPM_SOCKET, TPM_STATE, type DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import { findFirstError } from '#node/hypervisor/qemu/process/process-log.ts';
import { GuestPaths } from '#node/hypervisor/qemu/record/guest-paths.ts';
import { spawnDetached, type DetachedProcess, type User } from '#node/hypervisor/qemu/process/process.ts';
import { poll } from '#node/hypervisor/qemu/process/timing.ts';

const READY_TIMEOUT_MS = 10_000;
const POLL_INTERVAL_MS = 5;

interface SwtpmOptions {
  readonly binary: string;
  readonly user: User | undefined;
  readonly clock: Clock;
  /** The absolute path of its persistent state; undefined if the state ends with the domain. */
  readonly stateDirectory?: string | undefined;
}

/**
 * Paths must be relative to run/ or begin with a descriptor: an arbitrary path could contain a comma, which ends the
 * option.
 */
function swtpmArguments(id: string, directory: string): string[] {
  return [
    ...['socket', '--tpm2', '--tpmstate', `dir=${directory},mode=0600`],
    ...['--ctrl', `type=unixio,path=${TPM_SOCKET},mode=0600`],
    ...['--flags', 'startup-clear', '--terminate', '--pid', swtpmMarker(id)],
  ];
}

/**
 * Resolves when QEMU can connect. `started` is called before, so that the caller can end the process after a failure.
 */
export async function startSwtpm(
  dir: DomainDir,
  { binary, user, clock, stateDirectory }: SwtpmOptions,
  started: (swtpm: DetachedProcess) => void,
): Promise<void> {
  const log = await dir.openLog('swtpm.log');
  const paths = new GuestPaths(dir, { inherit: true });
  let swtpm: DetachedProcess;
  try {
    const args = swtpmArguments(dir.id, stateDirectory === undefined ? TPM_STATE : paths.pathFor(stateDirectory));
    const fds = await paths.open();
    swtpm = await spawnDetached({ command: binary, args, cwd: dir.run, user, logFd: log.fd, fds }, clock);
  } finally {
    await log.close();
    await paths.close();
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

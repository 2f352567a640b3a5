/**
 * Locks the persistent state, so that only one guest uses it. swtpm locks its own files, but QEMU would share the file
 * of the EFI variables. So a file beside them is locked and QEMU inherits the descriptor: the lock lasts as long as
 * QEMU, whatever happens to the node agent. On a file system with locks it also holds between machines.
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { GUEST_ENVIRONMENT } from '#node/hypervisor/qemu/process/process.ts';

const { O_CREAT, O_NOFOLLOW, O_RDWR } = constants;

const LOCK = 'lock';
const PRIVATE_FILE = 0o600;
/** The threads of a QEMU that has exited may live a little longer. */
const TIMEOUT_S = 1;
/** The exit code of flock if another process holds the lock. Other codes are errors. */
const CONFLICT_EXIT_CODE = 9;

/**
 * Returns the locked file, which must be closed after QEMU has inherited it; undefined if there is no persistent state.
 */
export async function lockState({ state }: Pick<DomainDefinition, 'state'>): Promise<FileHandle | undefined> {
  if (state === undefined) return undefined;
  const path = join(state.directory, LOCK);
  const file = await open(path, O_RDWR | O_CREAT | O_NOFOLLOW, PRIVATE_FILE);
  try {
    // Node has no flock. The lock belongs to the open file, not to the program that takes it.
    const code = await runFlock(file.fd);
    if (code === CONFLICT_EXIT_CODE)
      throw new HypervisorError(`another guest uses the persistent state in "${state.directory}"`);
    if (code !== 0)
      throw new HypervisorError(`the lock of the persistent state "${path}" failed: flock exited with code ${code}`);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

function runFlock(fd: number): Promise<number | null> {
  const args = ['--exclusive', '--timeout', String(TIMEOUT_S), '--conflict-exit-code', String(CONFLICT_EXIT_CODE), '3'];
  const child = spawn('flock', args, { stdio: ['ignore', 'ignore', 'ignore', fd], env: GUEST_ENVIRONMENT });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  });
}

/**
 * One guest at a time over what is kept. swtpm locks its own; QEMU shares the file of its EFI variables with anybody. So
 * a file beside them is locked, and QEMU inherits it: the lock is there as long as that QEMU is, whatever becomes of us.
 * It holds wherever the file system has locks, between machines, too.
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { DomainDefinition } from '#node/definition/domain-definition.ts';
import { HypervisorError } from '../hypervisor.ts';
import { GUEST_ENVIRONMENT } from './process.ts';

const { O_CREAT, O_NOFOLLOW, O_RDWR } = constants;

const LOCK = 'lock';
const PRIVATE_FILE = 0o600;
/** The threads of a QEMU that has ended may be there a little longer than it. */
const PATIENCE_S = 1;
/** Of flock, where somebody else has it; everything else is another fault. */
const TAKEN = 9;

/** To be closed when QEMU has inherited it. Undefined where nothing is kept. */
export async function lockState({ state }: Pick<DomainDefinition, 'state'>): Promise<FileHandle | undefined> {
  if (state === undefined) return undefined;
  const path = join(state.directory, LOCK);
  const file = await open(path, O_RDWR | O_CREAT | O_NOFOLLOW, PRIVATE_FILE);
  try {
    // Node has no such call. The lock belongs to the open file, not to the program that asks for it.
    const code = await runFlock(file.fd);
    if (code === TAKEN) throw new HypervisorError(`another guest uses the state in "${state.directory}"`);
    if (code !== 0) throw new HypervisorError(`"${path}" cannot be locked: flock exited with code ${code}`);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

function runFlock(fd: number): Promise<number | null> {
  const args = ['--exclusive', '--timeout', String(PATIENCE_S), '--conflict-exit-code', String(TAKEN), '3'];
  const child = spawn('flock', args, { stdio: ['ignore', 'ignore', 'ignore', fd], env: GUEST_ENVIRONMENT });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  });
}

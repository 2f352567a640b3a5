/**
 * Finds out whether both node agents run on the same machine and see the same files: a directory is identified by the boot
 * id of the machine, its device and its inode.
 */
import { readFile, stat } from 'node:fs/promises';
import type { SourceDirectory } from '#node/migration/messages.ts';

const BOOT_ID = '/proc/sys/kernel/random/boot_id';

/** Returns undefined if the directory cannot be identified. */
export async function describeDirectory(dir: string): Promise<SourceDirectory | undefined> {
  try {
    return { bootId: (await readFile(BOOT_ID, 'utf8')).trim(), dir, identity: await identityOf(dir) };
  } catch {
    return undefined;
  }
}

/** Reports whether the source's directory is a directory of this machine. */
export async function isLocalDirectory({ bootId, dir, identity }: SourceDirectory): Promise<boolean> {
  const here = await describeDirectory(dir);
  return here?.bootId === bootId && here.identity === identity;
}

async function identityOf(dir: string): Promise<string> {
  const { dev, ino } = await stat(dir, { bigint: true });
  return `${dev}:${ino}`;
}

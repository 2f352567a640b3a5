/** Whether the agents at both ends see the same files: a directory is told by the machine's boot, its device and inode. */
import { readFile, stat } from 'node:fs/promises';
import type { SourcePlace } from '#node/migration/messages.ts';

const BOOT_ID = '/proc/sys/kernel/random/boot_id';

/** Undefined where it cannot be told: then nothing is taken for it. */
export async function placeOf(dir: string): Promise<SourcePlace | undefined> {
  try {
    return { bootId: (await readFile(BOOT_ID, 'utf8')).trim(), dir, identity: await identityOf(dir) };
  } catch {
    return undefined;
  }
}

export async function isHere({ bootId, dir, identity }: SourcePlace): Promise<boolean> {
  const here = await placeOf(dir);
  return here?.bootId === bootId && here.identity === identity;
}

async function identityOf(dir: string): Promise<string> {
  const { dev, ino } = await stat(dir, { bigint: true });
  return `${dev}:${ino}`;
}

/**
 * The memory of what is guarded (forwarding.ts), as a file: the guard itself is lost if somebody flushes all rules of the
 * host. A restart of the machine resets all settings, so the memory ends with it.
 */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { randomSuffix } from '#lib/ids.ts';
import type { ForwardingGuard } from '#node/network/linux/host/guard-rules.ts';

const FILE = 'forwarding.json';
const BOOT_ID = '/proc/sys/kernel/random/boot_id';
const NOTHING: ForwardingGuard = { interfaces4: [], interfaces6: [], isEverywhere6: false };

/** Returns the memory of this boot; nothing is guarded if there is none or it is damaged. */
export async function readGuardMemory(dir: string): Promise<ForwardingGuard> {
  const text = await readFile(join(dir, FILE), 'utf8').catch(() => '{}');
  const { bootId, ...guard } = parse(text);
  return bootId === (await readBootId()) ? { ...NOTHING, ...guard } : NOTHING;
}

/** Replaces the file as a whole. */
export async function writeGuardMemory(dir: string, guard: ForwardingGuard): Promise<void> {
  await mkdir(dir, { recursive: true });
  const temporary = join(dir, `${FILE}.${randomSuffix()}`);
  await writeFile(temporary, JSON.stringify({ bootId: await readBootId(), ...guard }));
  await rename(temporary, join(dir, FILE));
}

export async function removeGuardMemory(dir: string): Promise<void> {
  await rm(join(dir, FILE), { force: true });
}

function parse(text: string): Partial<ForwardingGuard> & { bootId?: string } {
  try {
    return JSON.parse(text) as Partial<ForwardingGuard> & { bootId?: string };
  } catch {
    return {};
  }
}

const readBootId = async () => (await readFile(BOOT_ID, 'utf8')).trim();

/** Returns what either of two guards has. */
export function joinGuards(a: ForwardingGuard, b: ForwardingGuard): ForwardingGuard {
  return {
    interfaces4: [...new Set([...a.interfaces4, ...b.interfaces4])],
    interfaces6: [...new Set([...a.interfaces6, ...b.interfaces6])],
    isEverywhere6: a.isEverywhere6 || b.isEverywhere6,
  };
}

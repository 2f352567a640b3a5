/** Paths for QEMU. Pure. */
import { relative } from 'node:path';
import type { DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';

/** Returns paths below the domain directory relative to QEMU's working directory, and all others unchanged. */
export function guestPath({ path, run }: Pick<DomainDir, 'path' | 'run'>, absolute: string): string {
  return absolute.startsWith(`${path}/`) ? relative(run, absolute) : absolute;
}

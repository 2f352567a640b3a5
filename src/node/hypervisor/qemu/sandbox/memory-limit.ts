/** Finds out whether the kernel has killed a guest because its sandbox reached the memory limit. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The files in which the kernel counts such kills, and those of the limit: cgroup v1, then v2. */
const PLACES = [
  { root: '/sys/fs/cgroup/memory', counts: 'memory.oom_control', limit: 'memory.limit_in_bytes' },
  { root: '/sys/fs/cgroup', counts: 'memory.events', limit: 'memory.max' },
];

/**
 * Returns a sentence about the limit, or undefined if nothing was killed. `cgroup` is the path in its hierarchy, `root`
 * replaces `/` in tests.
 */
export async function describeMemoryKill(cgroup: string, root = '/'): Promise<string | undefined> {
  for (const place of PLACES) {
    const read = (name: string) => readFile(join(root, place.root, cgroup, name), 'latin1').catch(() => '');
    const kills = /^oom_kill (\d+)$/m.exec(await read(place.counts))?.[1];
    if (kills === undefined || kills === '0') continue;
    const mib = Math.round(Number(await read(place.limit)) / 2 ** 20);
    return `the kernel killed it because its sandbox reached the memory limit of ${mib} MiB`;
  }
  return undefined;
}

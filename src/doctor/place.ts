/** Where the plane is to run: its Node, data directory, port and the built-in guest. */
import { dirname, join } from 'node:path';
import type { Finding } from '#doctor/finding.ts';
import type { Machine } from '#doctor/machine.ts';

export interface Place {
  readonly dataDir: string;
  readonly host: string;
  readonly port: number;
  /** Where the files of the built-in guest are, when they were built. */
  readonly guestDir: string;
}

const NODE_MAJOR = 24;
const LEAST_FREE_BYTES = 1024 ** 3;
const GIB = 1024 ** 3;

export function examineNode({ nodeVersion }: Machine): Finding {
  const what = 'Node.js';
  if (nodeVersion.startsWith(`v${NODE_MAJOR}.`)) return { what, state: 'works', says: nodeVersion };
  const says = `${nodeVersion}; expected ${NODE_MAJOR}`;
  return { what, state: 'missing', says, mend: 'scripts/setup.sh (npm brings it)' };
}

export async function examineDataDir(machine: Machine, { dataDir }: Place): Promise<Finding[]> {
  const what = 'data directory';
  const found = await machine.file(dataDir);
  const holder = (await machine.text(join(dataDir, 'server.pid'))).trim();
  const place = found === undefined ? await existingParent(machine, dataDir) : { path: dataDir, ...found };
  if (!place.isDirectory || !place.isWritable) {
    const says = `${place.path} is no directory that this user may write to`;
    return [{ what, state: 'missing', says, mend: `choose another with --data-dir, or: chown $USER ${place.path}` }];
  }
  const says =
    holder !== ''
      ? `${dataDir}, in use by process ${holder}`
      : found === undefined
        ? `${dataDir} will be made`
        : dataDir;
  return [{ what, state: 'works', says }, await examineSpace(machine, place.path)];
}

async function existingParent(machine: Machine, path: string) {
  let parent = dirname(path);
  for (;;) {
    const found = await machine.file(parent);
    if (found !== undefined || parent === dirname(parent)) {
      return { path: parent, isDirectory: found?.isDirectory ?? false, isWritable: found?.isWritable ?? false };
    }
    parent = dirname(parent);
  }
}

async function examineSpace(machine: Machine, path: string): Promise<Finding> {
  const what = 'disk space';
  const free = await machine.freeBytes(path);
  if (free === undefined) return { what, state: 'limited', says: `cannot be told for ${path}` };
  const says = `${(free / GIB).toFixed(1)} GiB free in ${path}`;
  if (free >= LEAST_FREE_BYTES) return { what, state: 'works', says };
  return {
    what,
    state: 'limited',
    says: `${says}: guests pause when it is used up`,
    mend: 'free some, or move --data-dir',
  };
}

export async function examinePort(machine: Machine, { dataDir, host, port }: Place): Promise<Finding> {
  const what = 'port';
  if (!(await machine.isTaken(host, port))) return { what, state: 'works', says: `${host}:${port} is free` };
  // Our own plane has written there where it listens.
  const ours = (await machine.text(join(dataDir, 'kubeconfig'))).includes(`:${port}`);
  const holder = (await machine.text(join(dataDir, 'server.pid'))).trim();
  if (ours && holder !== '') return { what, state: 'works', says: `${host}:${port}, served by process ${holder}` };
  const says = `${host}:${port} is taken by another program: selfsame up cannot listen there`;
  return { what, state: 'limited', says, mend: `choose another: selfsame up --port ${port + 1}` };
}

export async function examineGuest(machine: Machine, { guestDir }: Place): Promise<Finding> {
  const what = 'built-in guest';
  const files = await Promise.all(['vmlinuz', 'initrd.gz'].map((name) => machine.file(join(guestDir, name))));
  if (files.every((file) => file !== undefined)) return { what, state: 'works', says: guestDir };
  const says = 'was not built: VMs with the image selfsame/guest (the examples) cannot start';
  return { what, state: 'limited', says, mend: 'scripts/setup.sh (on Debian, x86_64)' };
}

/** Checks of the environment of the plane: Node.js, data directory, port and built-in guest. */
import { dirname, join } from 'node:path';
import type { Finding } from '#doctor/finding.ts';
import type { ExaminedMachine } from '#doctor/machine.ts';

export interface PlaneLocation {
  readonly dataDir: string;
  readonly host: string;
  readonly port: number;
  /** The directory of the built-in guest. */
  readonly guestDir: string;
  /** Directories of tours that were killed. */
  readonly killedTours?: readonly string[];
}

const NODE_MAJOR = 24;
const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const MIN_FREE_BYTES = GIB;
/** Space for the store, its log and certificates. */
const MIN_START_BYTES = 64 * MIB;

export function examineNode({ nodeVersion }: ExaminedMachine): Finding {
  const what = 'Node.js';
  if (nodeVersion.startsWith(`v${NODE_MAJOR}.`)) return { what, state: 'works', message: nodeVersion };
  const message = `${nodeVersion}; expected ${NODE_MAJOR}`;
  return { what, state: 'missing', message, fix: 'scripts/setup.sh (npm brings it)' };
}

export async function examineDataDir(machine: ExaminedMachine, { dataDir }: PlaneLocation): Promise<Finding[]> {
  const what = 'data directory';
  const found = await machine.file(dataDir);
  const holder = await findServerPid(machine, dataDir);
  const place = found === undefined ? await existingParent(machine, dataDir) : { path: dataDir, ...found };
  const fix = 'choose another with --data-dir';
  if (!place.isDirectory) return [{ what, state: 'missing', message: `${place.path} is not a directory`, fix }];
  if (!place.isWritable) {
    const message = `${place.path} is not readable and writable for this user`;
    return [{ what, state: 'missing', message, fix: `${fix}, or as root: chown USER ${place.path}` }];
  }
  const message =
    holder !== undefined
      ? `${dataDir}, in use by process ${holder}`
      : found === undefined
        ? `${dataDir} will be created`
        : dataDir;
  return [{ what, state: 'works', message }, await examineSpace(machine, place.path)];
}

/** Returns the pid of the running server of the data directory; ignores a stale pid file. */
async function findServerPid(machine: ExaminedMachine, dataDir: string): Promise<number | undefined> {
  const pid = Number((await machine.text(join(dataDir, 'server.pid'))).trim());
  return pid > 0 && machine.isAlive(pid) ? pid : undefined;
}

async function existingParent(machine: ExaminedMachine, path: string) {
  let parent = dirname(path);
  for (;;) {
    const found = await machine.file(parent);
    if (found !== undefined || parent === dirname(parent)) {
      return { path: parent, isDirectory: found?.isDirectory ?? false, isWritable: found?.isWritable ?? false };
    }
    parent = dirname(parent);
  }
}

async function examineSpace(machine: ExaminedMachine, path: string): Promise<Finding> {
  const what = 'disk space';
  const free = await machine.freeBytes(path);
  if (free === undefined) return { what, state: 'limited', message: `unknown for ${path}` };
  const message = `${free < GIB ? `${Math.floor(free / MIB)} MiB` : `${(free / GIB).toFixed(1)} GiB`} free in ${path}`;
  if (free >= MIN_FREE_BYTES) return { what, state: 'works', message };
  const fix = `free some (du -xh ${path} | sort -h | tail), or choose another disk with --data-dir`;
  if (free < MIN_START_BYTES)
    return { what, state: 'missing', message: `${message}: too little to start the plane`, fix };
  return { what, state: 'limited', message: `${message}: guests pause when it runs out`, fix };
}

export async function examinePort(machine: ExaminedMachine, { dataDir, host, port }: PlaneLocation): Promise<Finding> {
  const what = 'port';
  if (!(await machine.isTaken(host, port))) return { what, state: 'works', message: `${host}:${port} is free` };
  // A running plane writes its address into the kubeconfig.
  const isOurPort = (await machine.text(join(dataDir, 'kubeconfig'))).includes(`:${port}`);
  const holder = await findServerPid(machine, dataDir);
  if (isOurPort && holder !== undefined)
    return { what, state: 'works', message: `${host}:${port}, served by process ${holder}` };
  const message = `${host}:${port} is used by another program: selfsame up cannot listen on it`;
  const fix = `choose another port (selfsame up --port 0 picks a free one); ss -ltnp 'sport = :${port}' shows the program`;
  return { what, state: 'limited', message, fix };
}

export async function examineGuest(machine: ExaminedMachine, { guestDir }: PlaneLocation): Promise<Finding> {
  const what = 'built-in guest';
  const files = await Promise.all(['vmlinuz', 'initrd.gz'].map((name) => machine.file(join(guestDir, name))));
  if (files.every((file) => file !== undefined)) return { what, state: 'works', message: guestDir };
  const message = 'not built: VMs with the image selfsame/guest (the examples) cannot start';
  return { what, state: 'limited', message, fix: 'scripts/setup.sh (on Debian, x86_64)' };
}

/** Returns a finding if killed tours left something behind. */
export function examineTours({ killedTours = [] }: PlaneLocation): Finding[] {
  if (killedTours.length === 0) return [];
  const message = `killed tours left directories and processes behind: ${killedTours.join(', ')}`;
  return [{ what: 'selfsame tour', state: 'limited', message, fix: 'selfsame tour --clear' }];
}

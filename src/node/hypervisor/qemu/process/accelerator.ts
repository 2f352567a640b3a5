/** Decides whether guests run with KVM or are emulated (TCG). */
import { constants, type Stats } from 'node:fs';
import { access, readFile, stat } from 'node:fs/promises';
import type { User } from '#node/hypervisor/qemu/process/process.ts';

export type Accelerator = 'kvm' | 'tcg';

const DEVICE = '/dev/kvm';

export interface KvmFacts {
  readonly canOpen: boolean;
  /** The content of /proc/cpuinfo. */
  readonly cpuinfo: string;
  /** Mode and owners of /dev/kvm. */
  readonly device: Pick<Stats, 'mode' | 'uid' | 'gid'> | undefined;
  /** The user that QEMU runs as; undefined for our own user. */
  readonly user: User | undefined;
}

/**
 * Reports whether KVM is usable. /dev/kvm can exist on a processor without virtualization, where guests would hang, so
 * the CPU flag is required, too.
 */
export function isKvmUsable({ canOpen, cpuinfo, device, user }: KvmFacts): boolean {
  if (!canOpen || device === undefined || !/^flags\s*:.*\b(?:vmx|svm)\b/m.test(cpuinfo)) return false;
  return user === undefined || kvmGroup(device) !== undefined || (device.mode & 0o006) === 0o006;
}

/** Returns the group that QEMU needs in order to open the device, but never root's group. */
export function kvmGroup(device: Pick<Stats, 'mode' | 'gid'>): number | undefined {
  return device.gid !== 0 && (device.mode & 0o060) === 0o060 ? device.gid : undefined;
}

export async function chooseAccelerator(wanted: 'auto' | Accelerator, user: User | undefined): Promise<Accelerator> {
  if (wanted !== 'auto') return wanted;
  const canOpen = await access(DEVICE, constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
  const cpuinfo = await readFile('/proc/cpuinfo', 'utf8').catch(() => '');
  const device = await stat(DEVICE).catch(() => undefined);
  return isKvmUsable({ canOpen, cpuinfo, device, user }) ? 'kvm' : 'tcg';
}

/**
 * Returns QEMU's user with the group of /dev/kvm if QEMU needs it. A process has only one group, because the others are
 * dropped.
 */
export async function addKvmGroup(user: User | undefined, accelerator: Accelerator): Promise<User | undefined> {
  if (user === undefined || accelerator === 'tcg') return user;
  const device = await stat(DEVICE).catch(() => undefined);
  const gid = device === undefined ? undefined : kvmGroup(device);
  return gid === undefined ? user : { uid: user.uid, gid };
}

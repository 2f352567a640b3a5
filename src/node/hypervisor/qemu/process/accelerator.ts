/** Decides whether guests run with KVM or are emulated (TCG). */
import { constants, type Stats } from 'node:fs';
import { access, readFile, stat } from 'node:fs/promises';

export type Accelerator = 'kvm' | 'tcg';

const DEVICE = '/dev/kvm';

export interface KvmFacts {
  readonly canOpen: boolean;
  /** The content of /proc/cpuinfo. */
  readonly cpuinfo: string;
  /** Mode and owners of /dev/kvm. */
  readonly device: Pick<Stats, 'mode' | 'uid' | 'gid'> | undefined;
  /** True if QEMU runs as another user than we do. */
  readonly asOtherUser: boolean;
}

/**
 * Reports whether KVM is usable. /dev/kvm can exist on a processor without virtualization, where guests would hang, so
 * the CPU flag is required, too.
 */
export function isKvmUsable({ canOpen, cpuinfo, device, asOtherUser }: KvmFacts): boolean {
  if (!canOpen || device === undefined || !/^flags\s*:.*\b(?:vmx|svm)\b/m.test(cpuinfo)) return false;
  return !asOtherUser || kvmGroup(device) !== undefined || (device.mode & 0o006) === 0o006;
}

/** Returns the group that QEMU needs in order to open the device, but never root's group. */
export function kvmGroup(device: Pick<Stats, 'mode' | 'gid'>): number | undefined {
  return device.gid !== 0 && (device.mode & 0o060) === 0o060 ? device.gid : undefined;
}

export async function chooseAccelerator(
  wanted: 'auto' | Accelerator,
  { asOtherUser }: Pick<KvmFacts, 'asOtherUser'>,
): Promise<Accelerator> {
  if (wanted !== 'auto') return wanted;
  const canOpen = await access(DEVICE, constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
  const cpuinfo = await readFile('/proc/cpuinfo', 'utf8').catch(() => '');
  const device = await stat(DEVICE).catch(() => undefined);
  return isKvmUsable({ canOpen, cpuinfo, device, asOtherUser }) ? 'kvm' : 'tcg';
}

/** Returns the group that QEMU needs in order to use KVM, if it needs one. */
export async function findKvmGroup(): Promise<number | undefined> {
  const device = await stat(DEVICE).catch(() => undefined);
  return device === undefined ? undefined : kvmGroup(device);
}

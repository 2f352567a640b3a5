/** Describes why a disk of an instance could not be opened: its volume, its claim, and who uses it. Pure. */
import { CLAIM_IN_USE } from '#api/storage/disk-use.ts';
import { describeVolume } from '#api/storage/describe-volume.ts';
import { DAMAGE_ADVICE, IMAGE_DAMAGED } from '#api/storage/image-damage.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import type { DiskProblem, Hypervisor } from '#node/hypervisor/hypervisor.ts';

interface DescribedProblem {
  readonly reason: typeof CLAIM_IN_USE | typeof IMAGE_DAMAGED;
  readonly message: string;
}

/** Returns the reason and the message for the user. `holder` is the name of the guest that has the disk, if it is known. */
export function describeDiskProblem(
  { deviceId, is, detail }: DiskProblem,
  vmi: Stored<VirtualMachineInstance>,
  verb: 'start' | 'plug in',
  holder: string | undefined,
): DescribedProblem {
  const name = deviceId.replace(/^disk-/, '');
  const volume = vmi.spec.volumes?.find((one) => one.name === name);
  const subject = verb === 'start' ? `start VirtualMachineInstance "${vmi.metadata.name}"` : `plug in volume "${name}"`;
  const what = describeVolume(name, volume);
  if (is === 'damaged') {
    const message = `Cannot ${subject}: the image of ${what} is damaged (${detail}); ${DAMAGE_ADVICE}`;
    return { reason: IMAGE_DAMAGED, message };
  }
  const user = describeHolder(holder, vmi.metadata.namespace);
  const message = `Cannot ${subject}: ${what} is in use by ${user}; stop it, or use another claim`;
  return { reason: CLAIM_IN_USE, message };
}

/** Names only guests of the same namespace: the user may not be allowed to see others. */
function describeHolder(holder: string | undefined, namespace: string | undefined): string {
  if (holder === undefined) return 'another guest or a program';
  const prefix = `${namespace}/`;
  if (!holder.startsWith(prefix)) return 'a guest of another namespace';
  return `VirtualMachineInstance "${holder.slice(prefix.length)}"`;
}

/** Returns the name (namespace/name) of another guest of this node that has the medium open. */
export function findHolder(path: string | undefined, id: string, hypervisor: Hypervisor): string | undefined {
  if (path === undefined) return undefined;
  return hypervisor.list().find((domain) => {
    if (domain.id === id || domain.current.state === 'ended') return false;
    const { devices = [] } = hypervisor.inspect(domain.id)?.definition ?? {};
    return devices.some((device) => device.type === 'disk' && device.source?.path === path);
  })?.name;
}

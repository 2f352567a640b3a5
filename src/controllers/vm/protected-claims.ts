/**
 * The disks that the status of a protected VM names. A disk that is detached stays in the list, and so stays protected,
 * until the VM is unprotected, the claim is gone, or a user releases it by name (verb releasedisk). A disk that a restore
 * has replaced is not kept: a user who may restore a VM may replace the disks in the snapshot, but no others. Pure.
 */
import { claimNameOf } from '#api/storage/claim-names.ts';
import { isProtected } from '#api/protection/delete-protection.ts';
import { templateSpec } from '#api/virtual-machine/kind.ts';
import type { ProtectedClaim, VmStatus } from '#api/virtual-machine/schema.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { isDeleting } from '#kube/meta.ts';
import { compareText } from '#lib/text/compare-text.ts';

/** Bounds the status. Detached disks come first: only this list protects them. */
const MAX_CLAIMS = 500;

export function protectedClaimsStatus(world: VmWorld): Pick<VmStatus, 'protectedClaims'> {
  const { vm, claimUidOf } = world;
  if (!isProtected(vm) || isDeleting(vm) || claimUidOf === undefined) return {};
  const attached = new Map<string, ProtectedClaim>();
  for (const { volumeName, claimName } of disksOf(world)) {
    const uid = claimUidOf(claimName);
    if (uid !== undefined && !attached.has(uid)) attached.set(uid, { name: claimName, uid, volumeName });
  }
  const detached = (vm.status?.protectedClaims ?? []).flatMap((known): ProtectedClaim[] => {
    const isAttached = known.uid !== undefined && attached.has(known.uid);
    const isGone = known.name === undefined || claimUidOf(known.name) !== known.uid;
    return isAttached || isGone || isReplaced(known, world) ? [] : [{ ...known, detached: true }];
  });
  const all = [...detached, ...attached.values()].slice(0, MAX_CLAIMS);
  return all.length === 0 ? {} : { protectedClaims: all.toSorted((a, b) => compareText(a.name ?? '', b.name ?? '')) };
}

/**
 * Reports whether the restore that holds the VM has put another claim in the place of this disk. A disk that was detached
 * earlier is not replaced. Without the name of its volume a disk stays protected.
 */
function isReplaced({ volumeName, detached }: ProtectedClaim, world: VmWorld): boolean {
  if (volumeName === undefined || detached === true) return false;
  const restored = world.restoredVolumes?.find((one) => one.volumeName === volumeName)?.persistentVolumeClaim;
  return (
    restored !== undefined && disksOf(world).some((one) => one.volumeName === volumeName && one.claimName === restored)
  );
}

interface Disk {
  readonly volumeName: string;
  readonly claimName: string;
}

function disksOf({ vm }: VmWorld): Disk[] {
  return (templateSpec(vm).volumes ?? []).flatMap((volume) => {
    const claimName = claimNameOf(volume);
    return claimName === undefined ? [] : [{ volumeName: volume.name, claimName }];
  });
}

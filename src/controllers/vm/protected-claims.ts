/**
 * The disks that the status of a protected VM names. A disk that is detached stays in the list, and so stays protected,
 * until the VM is unprotected, the claim is gone, or a user releases it by name (verb releasedisk). Disks that a restore
 * has replaced are not kept: a user who may restore a VM may replace its disks. Pure.
 */
import { claimNamesOf } from '#api/storage/claim-names.ts';
import { isProtected } from '#api/protection/delete-protection.ts';
import { templateSpec } from '#api/virtual-machine/kind.ts';
import type { ProtectedClaim, VmStatus } from '#api/virtual-machine/schema.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { isDeleting } from '#kube/meta.ts';
import { compareText } from '#lib/text/compare-text.ts';

/** Bounds the status. Disks of the template come first, because the list is what protects the others. */
const MAX_CLAIMS = 500;

export function protectedClaimsStatus(world: VmWorld): Pick<VmStatus, 'protectedClaims'> {
  const { vm, claimUidOf } = world;
  if (!isProtected(vm) || isDeleting(vm) || claimUidOf === undefined) return {};
  const attached = claimNamesOf(templateSpec(vm)).flatMap((name): ProtectedClaim[] => {
    const uid = claimUidOf(name);
    return uid === undefined ? [] : [{ name, uid }];
  });
  const detached = (vm.status?.protectedClaims ?? []).flatMap((known): ProtectedClaim[] => {
    const isAttached = attached.some(({ uid }) => uid === known.uid);
    const isGone = known.name === undefined || claimUidOf(known.name) !== known.uid;
    const isReplaced = known.detached !== true && isRestoring(world);
    return isAttached || isGone || isReplaced ? [] : [{ ...known, detached: true }];
  });
  const all = [...attached, ...detached].slice(0, MAX_CLAIMS);
  return all.length === 0 ? {} : { protectedClaims: all.toSorted((a, b) => compareText(a.name ?? '', b.name ?? '')) };
}

/**
 * Reports whether a restore may have written the template since the last status. Only this controller clears
 * restoreInProgress, and not before it has seen the template that the restore wrote.
 */
function isRestoring({ vm, lock }: VmWorld): boolean {
  return lock?.kind === 'restore' || vm.status?.restoreInProgress !== undefined;
}

/** Warns about disks that two VMs have and that only one guest at a time can use. Pure. */
import type { ProtectionLookup } from '#admission/protected-deletes.ts';
import { diskUsesOf, excludesOther, isShareable } from '#api/storage/disk-use.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { KubeObject } from '#kube/meta.ts';
import { compareText } from '#lib/text/compare-text.ts';

const MAX_WARNINGS = 8;

/** Returns a warning for each claim, with one of the other VMs. Such VMs are allowed: they can run in turn. */
export function warnAboutSharedClaims(
  vm: VirtualMachine,
  lookup: Pick<ProtectionLookup, 'vmsOfClaim' | 'claimsOfVm'>,
): string[] {
  const { namespace = '', name: vmName, deletionTimestamp } = vm.metadata;
  if (deletionTimestamp !== undefined || vm.spec.template?.spec === undefined) return [];
  const uses = diskUsesOf(vm.spec.template.spec);
  if (uses.size === 0) return [];
  const warnings: string[] = [];
  for (const [claimName, use] of uses) {
    const claim: KubeObject = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace, name: claimName },
    };
    const others = lookup.vmsOfClaim(claim).flatMap(({ metadata, spec }) => {
      const otherUse = diskUsesOf(spec.template.spec ?? { domain: {} }).get(claimName);
      const isRival = metadata.name !== vmName && otherUse !== undefined && excludesOther(use, otherUse);
      return isRival && metadata.deletionTimestamp === undefined ? [metadata.name] : [];
    });
    const [other] = others.toSorted(compareText);
    if (other === undefined || isShareableClaim(vm, claimName, lookup)) continue;
    warnings.push(
      `PersistentVolumeClaim "${claimName}" is also a disk of VirtualMachine "${other}": only one of them can run at a time`,
    );
  }
  return warnings.slice(0, MAX_WARNINGS);
}

function isShareableClaim(
  vm: VirtualMachine,
  claimName: string,
  { claimsOfVm }: Pick<ProtectionLookup, 'claimsOfVm'>,
): boolean {
  const claim = claimsOfVm(vm).find(({ metadata }) => metadata.name === claimName);
  return claim !== undefined && isShareable(claim);
}

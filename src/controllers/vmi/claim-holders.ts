/**
 * Finds instances whose guests have a claim open that another instance needs. The hypervisor refuses such a disk; this
 * controller refuses the launch before, and names the claim and its user. Pure.
 */
import { diskUsesOf, excludesOther, isShareable, type DiskUse } from '#api/storage/disk-use.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { isFinalVmiPhase, type VmiStatus } from '#api/virtual-machine-instance/status.ts';
import type { ClaimView } from '#controllers/shared/launcher/claim-views.ts';
import { findCondition } from '#kube/conditions.ts';
import { controllerOf, type Stored } from '#kube/meta.ts';

type Vmi = Stored<VirtualMachineInstance>;

/** A claim that another instance uses, and that instance. */
export interface HeldClaim {
  readonly claimName: string;
  readonly holder: Vmi;
}

/** Returns the names of the claims that the guest writes. */
export function writtenClaimNames({ spec }: VirtualMachineInstance): string[] {
  return [...diskUsesOf(spec)].filter(([, use]) => use === 'writes').map(([name]) => name);
}

export interface ClaimUsers {
  /** Returns all instances that use the claim. */
  usersOf(claimName: string): readonly Vmi[];
  /** Returns the instances that write to the claim. */
  writersOf(claimName: string): readonly Vmi[];
  /** Reports whether the first of two instances that have not been scheduled has a pod, or gets one before the other. */
  startsBefore(first: Vmi, second: Vmi): boolean;
}

/** Returns the instances that cannot have a claim at the same time as this one, whether or not they run. */
export function findRivals(vmi: Vmi, users: ClaimUsers): Vmi[] {
  return [...diskUsesOf(vmi.spec)].flatMap(([claimName, use]) => rivalsFor(vmi, claimName, use, users));
}

/** Returns the claims of the instance that other instances hold, each with one holder. */
export function findHeldClaims(vmi: Vmi, claims: ReadonlyMap<string, ClaimView>, users: ClaimUsers): HeldClaim[] {
  return [...diskUsesOf(vmi.spec)].flatMap(([claimName, use]) => {
    const view = claims.get(claimName);
    if (view === undefined || isShareable(view.claim)) return [];
    const holder = rivalsFor(vmi, claimName, use, users).find((other) => holdsClaim(other, claimName, vmi, users));
    return holder === undefined ? [] : [{ claimName, holder }];
  });
}

function rivalsFor({ metadata }: Vmi, claimName: string, use: DiskUse, users: ClaimUsers): Vmi[] {
  // Many instances can read one claim, so readers are not compared with readers.
  const candidates = use === 'writes' ? users.usersOf(claimName) : users.writersOf(claimName);
  return candidates.filter((other) => {
    const otherUse = diskUsesOf(other.spec).get(claimName);
    return other.metadata.uid !== metadata.uid && otherUse !== undefined && excludesOther(use, otherUse);
  });
}

/**
 * Reports whether the other instance has the claim, or will have it first. An instance whose start something else
 * prevents does not have it.
 */
function holdsClaim(other: Vmi, claimName: string, vmi: Vmi, users: ClaimUsers): boolean {
  const { phase, conditions } = other.status ?? {};
  if (isFinalVmiPhase(phase)) return false;
  if (!isPending(phase)) return !isHotplugPending(other.status, claimName);
  return (
    isPending(vmi.status?.phase) &&
    users.startsBefore(other, vmi) &&
    findCondition(conditions, 'Synchronized')?.status !== 'False' &&
    other.metadata.deletionTimestamp === undefined
  );
}

function isPending(phase: VmiStatus['phase']): boolean {
  return phase === undefined || phase === 'Pending';
}

/** Reports whether the claim is a hotplugged disk that the guest does not have yet. */
function isHotplugPending(status: VmiStatus | undefined, claimName: string): boolean {
  const volumes = status?.volumeStatus?.filter((volume) => volume.persistentVolumeClaimInfo?.claimName === claimName);
  return volumes?.some((volume) => volume.hotplugVolume !== undefined && volume.phase === 'Pending') === true;
}

/** Returns what holds the claim, and what to do. */
export function describeHeldClaim({ claimName, holder }: HeldClaim): string {
  const { name } = holder.metadata;
  const vm = controllerOf(holder);
  const [user, advice] =
    vm?.kind === 'VirtualMachine'
      ? [`VirtualMachine "${vm.name}"`, `stop it with "virtctl stop ${vm.name}"`]
      : [`VirtualMachineInstance "${name}"`, 'delete it'];
  return `PersistentVolumeClaim "${claimName}" is in use by ${user}; ${advice}, or use another claim`;
}

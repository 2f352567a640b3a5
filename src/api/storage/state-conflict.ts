/**
 * State conflicts: claims that are marked as the persistent state of a VM and have another owner. Without them the
 * guest would start with an empty TPM although its state may exist, so the VM does not start until a user decides.
 * Pure.
 */
import { KUBEVIRT_GROUP, SNAPSHOT_GROUP } from '#api/names.ts';
import {
  findStateClaim,
  hasLegacyNameOf,
  hasNoOwner,
  isMarkedFor,
  markedKeysOf,
  stateClaimName,
  stateKeyOf,
  withoutSuperseded,
  type StateOwner,
} from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { controllerOf, controllerUid, type OwnerReference, type Stored } from '#kube/meta.ts';

type Claim = Stored<PersistentVolumeClaim>;

/** The reason of conditions and Events. */
export const STATE_CONFLICT = 'PersistentStateConflict';
const MAX_NAMED = 3;

/** Returns the claims that prevent the VM from starting, the newest first; none if it has state that it may use. */
export function findStateConflicts(claims: Iterable<Claim>, owner: StateOwner): Claim[] {
  const all = [...claims];
  return findStateClaim(all, owner) === undefined ? listConflictingClaims(all, owner) : [];
}

/**
 * Returns all claims that are marked for the VM and have another owner or are disks, even if the VM has a claim of its
 * own.
 */
export function listConflictingClaims(claims: Iterable<Claim>, owner: StateOwner): Claim[] {
  const { vmName, ownerUid } = owner;
  const marked = [...claims].filter((claim) => isMarkedFor(claim, vmName) || isNamedOnlyFor(claim, vmName));
  const isDisk = (claim: Claim) => owner.diskUserOf?.(claim.metadata.name) !== undefined;
  const hasOtherHolder = (claim: Claim) =>
    !hasNoOwner(claim) || listOtherMarks(claim, vmName).length > 0 || isDisk(claim);
  const foreign = marked.filter(
    (claim) => controllerUid(claim) !== ownerUid && hasOtherHolder(claim) && !isRestoring(claim),
  );
  return withoutSuperseded(foreign, marked, vmName);
}

/** Returns the keys of other VMs that the claim is marked for. */
export function listOtherMarks(claim: PersistentVolumeClaim, vmName: string): string[] {
  return markedKeysOf(claim).filter((key) => key !== stateKeyOf(vmName));
}

/** Reports whether a restore owns the claim. It hands the claim over to the VM, or deletes it on failure. */
export function isRestoring(claim: PersistentVolumeClaim): boolean {
  const { kind, apiVersion = '' } = controllerOf(claim) ?? {};
  return kind === VIRTUAL_MACHINE_RESTORES.kind && apiVersion.startsWith(`${SNAPSHOT_GROUP}/`);
}

/**
 * Reports whether the claim is marked only by its legacy name. A current name of one VM may look like the legacy name
 * of another: `persistent-state-for-db-x4b2z` belongs to db, not to a VM db-x4b2z.
 */
function isNamedOnlyFor(claim: Claim, vmName: string): boolean {
  if (!hasLegacyNameOf(claim, vmName) || markedKeysOf(claim).length > 0) return false;
  const owners = (claim.metadata.ownerReferences ?? []).filter(isMachine);
  return !owners.some(({ name }) => claim.metadata.name.startsWith(stateClaimName(name, '')));
}

function isMachine({ kind, apiVersion }: OwnerReference): boolean {
  const isKind = kind === VIRTUAL_MACHINES.kind || kind === VIRTUAL_MACHINE_INSTANCES.kind;
  return isKind && apiVersion.startsWith(`${KUBEVIRT_GROUP}/`);
}

/** Describes the holder of the claim: the VM whose disk it is, its owner, or another VM that it is marked for. */
export function describeHolder(claim: Claim, { vmName, ownerUid, diskUserOf }: StateOwner): string {
  const diskUser = diskUserOf?.(claim.metadata.name);
  if (diskUser !== undefined) return `is a disk of VirtualMachine "${diskUser}"`;
  const [first] = claim.metadata.ownerReferences ?? [];
  const owner = controllerOf(claim) ?? first;
  if (owner === undefined) return `is also marked for VirtualMachine "${listOtherMarks(claim, vmName)[0] ?? ''}"`;
  const holder = `belongs to ${owner.kind} "${owner.name}"`;
  if (owner.uid === ownerUid) return `${holder} without being controlled by it`;
  return isMachine(owner) && owner.name === vmName ? `${holder} of another uid (${owner.uid})` : holder;
}

/** The VM or instance that cannot start. */
interface ConflictSubject extends StateOwner {
  readonly namespace: string | undefined;
  /** True for an instance without a VM: it has no verb that changes the owner of its claims. */
  readonly isAlone?: boolean;
}

/** Returns the message of the condition and the Event: the conflict, and the two ways to resolve it. */
export function describeConflicts(conflicts: readonly Claim[], subject: ConflictSubject): string {
  const { vmName, namespace = '', isAlone = false } = subject;
  const [first, ...more] = conflicts;
  if (first === undefined) return '';
  const { name } = first.metadata;
  const kind = isAlone ? VIRTUAL_MACHINE_INSTANCES.kind : VIRTUAL_MACHINES.kind;
  const conflict = `PersistentVolumeClaim "${name}" is marked as its persistent state, but ${describeHolder(first, subject)}`;
  const command = (verb: string) => `"virtctl state ${verb} ${vmName} --claim ${name} -n ${namespace}"`;
  const remedy = isAlone
    ? 'remove the ownerReferences of the claim to use it, or its label and annotation persistent-state-for to start with empty state'
    : `hand it over to this VM with ${command('adopt')}, or remove the mark with ${command('release')}`;
  const others = more.slice(0, MAX_NAMED).map(({ metadata }) => `"${metadata.name}"`);
  const rest = more.length > MAX_NAMED ? ' and others' : '';
  const also = others.length === 0 ? '' : `; the same applies to ${others.join(', ')}${rest}`;
  return `Cannot start ${kind} "${vmName}": ${conflict}; ${remedy}${also}`;
}

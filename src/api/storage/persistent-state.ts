/**
 * The persistent state of a VM, its TPM and its EFI variables: which VMs need it, and which claim holds it.
 * controllers/vmi/ creates the claim; the node owns its content. Pure.
 */
import { createHash } from 'node:crypto';
import { KUBEVIRT_GROUP } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { PersistentVolumeClaim, Pod } from '#kube/core-kinds.ts';
import {
  controllerOf,
  controllerUid,
  isDeleting,
  type KubeObject,
  type OwnerReference,
  type Stored,
} from '#kube/meta.ts';

/**
 * Name of the volume in volumeStatus of an instance. Constant, because names of VMs may be too long for a volume name.
 */
export const STATE_VOLUME = 'persistent-state-for-this-vm';
/** Name of the volume in the launcher pod. */
export const STATE_POD_VOLUME = 'vm-state';
/** On claims: the key of the VM whose state they hold. KubeVirt selects by this label. */
export const STATE_LABEL = 'persistent-state-for';
/** Value of a VM's annotation on a claim that has the VM's legacy name but is not its state. */
export const RELEASED = 'false';
/** On claims: the uid of the claim that they replace. */
export const SUPERSEDES_ANNOTATION = 'selfsame.io/supersedes';
/**
 * On claims that a migration or restore replaces: the uid of the claim, or of the restore, that replaces them. Only the
 * controllers in CLAIM_REPLACERS can write it (operator/objects/protected-claims.ts), so that they delete only what they
 * have marked themselves.
 */
export const REPLACED_BY_ANNOTATION = 'selfsame.io/replaced-by';
/** The beginning of the keys of all labels and annotations that make a claim the state of a VM. */
export const STATE_MARK_PREFIX = STATE_LABEL;

const PREFIX = `${STATE_LABEL}-`;
/** With the prefix, the longest name of an annotation or value of a label. */
const MAX_KEY_LENGTH = 42;
const CUT_LENGTH = 33;
const HASH_LENGTH = 8;
const SUFFIX_LENGTH = 5;

type Claim = Stored<PersistentVolumeClaim>;

/** The VM, or the instance without a VM, that owns the state. */
export interface StateOwner {
  readonly vmName: string;
  /** uid of the VM, or of an instance without a VM. */
  readonly ownerUid: string;
  /** The uid of the claim that the status of the VM names. Users cannot write it, unlike the marks of claims. */
  readonly recordedUid?: string;
  /** Returns the VM that has the claim as a disk. Such a claim is nobody's state, whatever marks a user gives it. */
  diskUserOf?(claimName: string): string | undefined;
}

export function needsState({ domain }: Pick<VmiSpec, 'domain'>): boolean {
  const tpm = domain.devices?.tpm;
  const keepsTpm = tpm?.persistent === true && tpm.enabled !== false;
  return keepsTpm || domain.firmware?.bootloader?.efi?.persistent === true;
}

/**
 * Returns the owner of the state. The state of an instance belongs to its VM, if there is one: `vm`, whose status names
 * the claim.
 */
export function stateOwnerOf(
  owner: Stored<VirtualMachine> | Stored<VirtualMachineInstance>,
  vm: Stored<VirtualMachine> | undefined = isVm(owner) ? owner : undefined,
): StateOwner {
  const { name, uid } = vmOf(owner) ?? owner.metadata;
  const recordedUid = vm?.metadata.uid === uid ? vm.status?.stateClaim?.uid : undefined;
  return { vmName: name, ownerUid: uid, ...(recordedUid !== undefined && { recordedUid }) };
}

function isVm(owner: Stored<VirtualMachine> | Stored<VirtualMachineInstance>): owner is Stored<VirtualMachine> {
  return owner.kind === VIRTUAL_MACHINES.kind;
}

/** Returns the owner reference of an instance to its VM. Owners of VMs themselves do not count. */
function vmOf(owner: KubeObject): OwnerReference | undefined {
  const controller = owner.kind === VIRTUAL_MACHINE_INSTANCES.kind ? controllerOf(owner) : undefined;
  const isVm = controller?.kind === VIRTUAL_MACHINES.kind && controller.apiVersion.startsWith(`${KUBEVIRT_GROUP}/`);
  return isVm ? controller : undefined;
}

/** Returns the key of a VM: its name, shortened for use in names, annotations and labels of claims. */
export function stateKeyOf(vmName: string): string {
  if (vmName.length <= MAX_KEY_LENGTH) return vmName;
  // A dot before a dash is not valid in the name of a claim.
  return `${vmName.slice(0, CUT_LENGTH).replace(/\.$/, '')}-${hashOf(vmName, HASH_LENGTH)}`;
}

export function stateClaimName(vmName: string, suffix: string): string {
  return `${PREFIX}${stateKeyOf(vmName)}-${suffix}`;
}

/**
 * Derives the end of the claim's name from the uid of the first user, so that a repeated create does not make a second
 * claim.
 */
export function stateSuffixOf(uid: string): string {
  return hashOf(uid, SUFFIX_LENGTH);
}

/** Returns the name that older versions gave to the only claim of a VM. */
export function legacyStateClaimName(vmName: string): string {
  return `${PREFIX}${vmName}`;
}

/** Returns the annotation that is `true` on the claim with the VM's state. */
export function stateAnnotationOf(vmName: string): string {
  return `${PREFIX}${stateKeyOf(vmName)}`;
}

/** Returns the keys of all VMs whose state the claim may hold, by a mark or by its name: to find claims by index. */
export function stateKeysOfClaim(claim: PersistentVolumeClaim): string[] {
  const { name = '' } = claim.metadata;
  if (!name.startsWith(PREFIX)) return [...new Set(markedKeysOf(claim))];
  // A claim for the target of a migration has no mark before the hand-over, but it has an owner.
  const owner = controllerOf(claim)?.name;
  const named = [stateKeyOf(name.slice(PREFIX.length)), ...(owner === undefined ? [] : [stateKeyOf(owner)])];
  return [...new Set([...markedKeysOf(claim), ...named])];
}

/**
 * Returns the claim that holds the state of the VM now. `claims` are those of the namespace, or at least all of them
 * that have the key of the VM (stateKeysOfClaim).
 *
 * Prefers the claim that the status of the VM names, then claims that the VM controls to those without an owner, then
 * marked claims to those with the legacy name, then the newest. Thus creating or marking another claim cannot replace the
 * VM's own. A claim that a migration or restore has replaced counts as its replacement. Claims of other owners are never
 * returned (state-conflict.ts); these include an earlier VM of the same name, which had another uid.
 */
export function findStateClaim(claims: Iterable<Claim>, owner: StateOwner): Claim | undefined {
  const all = [...claims];
  const marked = all.filter((claim) => isMarkedFor(claim, owner.vmName) || hasLegacyNameOf(claim, owner.vmName));
  const isOwn = (claim: Claim) => controllerUid(claim) === owner.ownerUid;
  const isFree = (claim: Claim) => hasNoOwner(claim) && isNotMarkedForOthers(claim, stateKeyOf(owner.vmName));
  const recorded = all.find(({ metadata }) => metadata.uid === owner.recordedUid);
  if (recorded !== undefined) {
    const current = followReplacements(recorded, all, owner);
    const isUsable = current !== recorded || (marked.includes(current) && (isOwn(current) || isFree(current)));
    if (isUsable && !isDeleting(current)) return current;
  }
  const states = marked.filter(({ metadata }) => owner.diskUserOf?.(metadata.name) === undefined);
  const [own, free] = [states.filter(isOwn), states.filter(isFree)];
  const found = newestCurrent(own, own, owner) ?? newestCurrent(free, [...own, ...free], owner);
  const current = found && followReplacements(found, all, owner);
  return current !== undefined && isDeleting(current) ? undefined : current;
}

/** Returns the claim that has replaced this one and belongs to the owner, or the claim itself. */
export function followReplacements(
  claim: Claim,
  claims: readonly Claim[],
  { ownerUid }: Pick<StateOwner, 'ownerUid'>,
): Claim {
  const seen = new Set<string>();
  let current = claim;
  for (;;) {
    seen.add(current.metadata.uid);
    const by = replacedBy(current);
    const next = claims.find((one) => one.metadata.uid === by && controllerUid(one) === ownerUid);
    if (next === undefined || seen.has(next.metadata.uid)) return current;
    current = next;
  }
}

/** Returns the uid of the object that replaces the claim. */
export function replacedBy({ metadata }: KubeObject): string | undefined {
  return metadata.annotations?.[REPLACED_BY_ANNOTATION];
}

/** Returns the newest claim that is not superseded by one of `candidates`. */
function newestCurrent(
  claims: readonly Claim[],
  candidates: readonly Claim[],
  { vmName }: StateOwner,
): Claim | undefined {
  const current = withoutSuperseded(claims, candidates, vmName);
  return current.find((claim) => isMarkedFor(claim, vmName)) ?? current[0];
}

/** Returns the claims that are neither being deleted nor superseded, the newest first. */
export function withoutSuperseded(claims: readonly Claim[], candidates: readonly Claim[], vmName: string): Claim[] {
  // Claims that are being deleted still supersede: old state must never replace newer state.
  const superseded = new Set(candidates.filter((claim) => isMarkedFor(claim, vmName)).flatMap(supersededBy));
  return claims.filter((claim) => !isDeleting(claim) && !superseded.has(claim.metadata.uid)).toSorted(newestFirst);
}

/** Reports whether the claim has no owner and is marked for this VM only, so that the VM would use it. */
export function isUnownedStateOf(claim: PersistentVolumeClaim, vmName: string): boolean {
  const isNamed = isMarkedFor(claim, vmName) || hasLegacyNameOf(claim, vmName);
  return hasNoOwner(claim) && isNotMarkedForOthers(claim, stateKeyOf(vmName)) && isNamed;
}

export function isMarkedFor(claim: PersistentVolumeClaim, vmName: string): boolean {
  return markedKeysOf(claim).includes(stateKeyOf(vmName));
}

/**
 * Reports whether the claim is marked by its legacy name. Names cannot be changed: the annotation `false` removes the
 * mark.
 */
export function hasLegacyNameOf({ metadata }: PersistentVolumeClaim, vmName: string): boolean {
  const isReleased = metadata.annotations?.[stateAnnotationOf(vmName)] === RELEASED;
  return metadata.name === legacyStateClaimName(vmName) && !isReleased;
}

export function hasNoOwner({ metadata }: PersistentVolumeClaim): boolean {
  return (metadata.ownerReferences ?? []).length === 0;
}

function isNotMarkedForOthers(claim: PersistentVolumeClaim, key: string): boolean {
  return markedKeysOf(claim).every((marked) => marked === key);
}

/** Returns the keys of the VMs that a label or an annotation of the claim names. */
export function markedKeysOf({ metadata: { annotations = {}, labels = {} } }: PersistentVolumeClaim): string[] {
  const annotated = Object.keys(annotations).filter((name) => name.startsWith(PREFIX) && annotations[name] === 'true');
  const label = labels[STATE_LABEL];
  return [...annotated.map((name) => name.slice(PREFIX.length)), ...(label === undefined ? [] : [label])];
}

function supersededBy({ metadata: { uid, annotations } }: Claim): string[] {
  const old = annotations?.[SUPERSEDES_ANNOTATION];
  return old === undefined || old === uid ? [] : [old];
}

function newestFirst({ metadata: a }: Claim, { metadata: b }: Claim): number {
  if (a.creationTimestamp !== b.creationTimestamp) return a.creationTimestamp > b.creationTimestamp ? -1 : 1;
  return a.name < b.name ? -1 : 1;
}

function hashOf(text: string, length: number): string {
  return createHash('sha256').update(text).digest('hex').slice(0, length);
}

/** Returns the state claim of a launcher pod. */
export function stateClaimIn({ spec }: Pod): string | undefined {
  return spec.volumes?.find(({ name }) => name === STATE_POD_VOLUME)?.persistentVolumeClaim?.claimName;
}

/** Returns the claim that the status of an instance reports. */
export function reportedStateClaim({ status }: VirtualMachineInstance): string | undefined {
  return status?.volumeStatus?.find(({ name }) => name === STATE_VOLUME)?.persistentVolumeClaimInfo?.claimName;
}

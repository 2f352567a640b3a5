/**
 * The state of a VM that outlives its restarts, its TPM and its EFI variables: who needs it, and which claim holds it.
 * How the claim is made is in controllers/persistent-state/, what lies in it is the node's. Pure.
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

/** Its name in an instance's volumeStatus; always the same, for names of VMs may be too long for one. */
export const STATE_VOLUME = 'persistent-state-for-this-vm';
/** Its name in the launcher pod. */
export const STATE_POD_VOLUME = 'vm-state';
/** On claims: the key of the VM whose state they hold, as upstream selects them. */
export const STATE_LABEL = 'persistent-state-for';
/** The value of a VM's annotation on a claim of its legacy name that is not its state. */
export const RELEASED = 'false';
/** On claims: the uid of the claim whose place they took. */
export const SUPERSEDES_ANNOTATION = 'selfsame.io/supersedes';

const PREFIX = `${STATE_LABEL}-`;
/** With the prefix it is as long as the name of an annotation, and the value of a label, may be. */
const MAX_KEY_LENGTH = 42;
const CUT_LENGTH = 33;
const HASH_LENGTH = 8;
const SUFFIX_LENGTH = 5;

type Claim = Stored<PersistentVolumeClaim>;

/** Whose state it is. */
export interface StateOwner {
  readonly vmName: string;
  /** Of the VM; of the instance where there is none. */
  readonly ownerUid: string;
}

export function needsState({ domain }: Pick<VmiSpec, 'domain'>): boolean {
  const tpm = domain.devices?.tpm;
  const keepsTpm = tpm?.persistent === true && tpm.enabled !== false;
  return keepsTpm || domain.firmware?.bootloader?.efi?.persistent === true;
}

/** An instance of a VM has no state of its own: it is the VM's. */
export function stateOwnerOf(owner: Stored<VirtualMachine> | Stored<VirtualMachineInstance>): StateOwner {
  const { name, uid } = vmOf(owner) ?? owner.metadata;
  return { vmName: name, ownerUid: uid };
}

/** VMs may have owners, too, who do not count. */
function vmOf(owner: KubeObject): OwnerReference | undefined {
  const controller = owner.kind === VIRTUAL_MACHINE_INSTANCES.kind ? controllerOf(owner) : undefined;
  const isVm = controller?.kind === VIRTUAL_MACHINES.kind && controller.apiVersion.startsWith(`${KUBEVIRT_GROUP}/`);
  return isVm ? controller : undefined;
}

/** The name of the VM as it stands in names, annotations and labels of claims. */
export function stateKeyOf(vmName: string): string {
  if (vmName.length <= MAX_KEY_LENGTH) return vmName;
  // A dot before a dash would be no name of a claim.
  return `${vmName.slice(0, CUT_LENGTH).replace(/\.$/, '')}-${hashOf(vmName, HASH_LENGTH)}`;
}

export function stateClaimName(vmName: string, suffix: string): string {
  return `${PREFIX}${stateKeyOf(vmName)}-${suffix}`;
}

/** The end of the claim's name, from the uid of who needs it first: making it twice makes one. */
export function stateSuffixOf(uid: string): string {
  return hashOf(uid, SUFFIX_LENGTH);
}

/** How the one claim of a VM was named before there could be several. */
export function legacyStateClaimName(vmName: string): string {
  return `${PREFIX}${vmName}`;
}

/** On claims: `true` on the one that holds the VM's state. */
export function stateAnnotationOf(vmName: string): string {
  return `${PREFIX}${stateKeyOf(vmName)}`;
}

/** Returns the keys of all VMs whose state the claim may hold, by a mark or by its name: to find claims by index. */
export function stateKeysOfClaim(claim: PersistentVolumeClaim): string[] {
  const { name = '' } = claim.metadata;
  const named = name.startsWith(PREFIX) ? [stateKeyOf(name.slice(PREFIX.length))] : [];
  return [...new Set([...markedKeysOf(claim), ...named])];
}

/**
 * Returns the claim that holds the state of the VM now. `claims` are those of the namespace, or at least all of them that
 * have the key of the VM (stateKeysOfClaim).
 *
 * Claims that the VM controls come first, then those without an owner; in each group those with a mark before the legacy
 * name, and the newest of several. So nobody puts a claim in the place of the VM's own by marking it. What belongs to
 * somebody else is never returned (state-conflict.ts), and that includes an earlier VM of the name, which had another uid.
 */
export function findState(claims: Iterable<Claim>, owner: StateOwner): Claim | undefined {
  const all = [...claims].filter((claim) => isMarkedFor(claim, owner.vmName) || hasLegacyNameOf(claim, owner.vmName));
  const own = all.filter((claim) => controllerUid(claim) === owner.ownerUid);
  const free = all.filter((claim) => hasNoOwner(claim) && isMarkedForNoOther(claim, stateKeyOf(owner.vmName)));
  return newestCurrent(own, own, owner) ?? newestCurrent(free, [...own, ...free], owner);
}

/** `beside`: the claims that may say whose place they have taken. */
function newestCurrent(claims: readonly Claim[], beside: readonly Claim[], { vmName }: StateOwner): Claim | undefined {
  const current = withoutSuperseded(claims, beside, vmName);
  return current.find((claim) => isMarkedFor(claim, vmName)) ?? current[0];
}

/** Returns the claims that stay and that no other has taken the place of, the newest first. */
export function withoutSuperseded(claims: readonly Claim[], beside: readonly Claim[], vmName: string): Claim[] {
  // Those that are being deleted count, too: old state never comes back in place of newer.
  const superseded = new Set(beside.filter((claim) => isMarkedFor(claim, vmName)).flatMap(supersededBy));
  return claims.filter((claim) => !isDeleting(claim) && !superseded.has(claim.metadata.uid)).toSorted(newestFirst);
}

/** Reports whether a claim without an owner would be taken for the state of the VM: it is marked for no other. */
export function isUnownedStateOf(claim: PersistentVolumeClaim, vmName: string): boolean {
  const isNamed = isMarkedFor(claim, vmName) || hasLegacyNameOf(claim, vmName);
  return hasNoOwner(claim) && isMarkedForNoOther(claim, stateKeyOf(vmName)) && isNamed;
}

export function isMarkedFor(claim: PersistentVolumeClaim, vmName: string): boolean {
  return markedKeysOf(claim).includes(stateKeyOf(vmName));
}

/** Reports whether the name of the claim marks it for the VM. A name cannot be taken off: the annotation `false` does. */
export function hasLegacyNameOf({ metadata }: PersistentVolumeClaim, vmName: string): boolean {
  const isReleased = metadata.annotations?.[stateAnnotationOf(vmName)] === RELEASED;
  return metadata.name === legacyStateClaimName(vmName) && !isReleased;
}

export function hasNoOwner({ metadata }: PersistentVolumeClaim): boolean {
  return (metadata.ownerReferences ?? []).length === 0;
}

function isMarkedForNoOther(claim: PersistentVolumeClaim, key: string): boolean {
  return markedKeysOf(claim).every((marked) => marked === key);
}

/** Returns the keys of the VMs that a label or an annotation of the claim names. */
export function markedKeysOf({ metadata: { annotations = {}, labels = {} } }: PersistentVolumeClaim): string[] {
  const noted = Object.keys(annotations).filter((name) => name.startsWith(PREFIX) && annotations[name] === 'true');
  const label = labels[STATE_LABEL];
  return [...noted.map((name) => name.slice(PREFIX.length)), ...(label === undefined ? [] : [label])];
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

/** As the controller of instances has named it in the launcher pod. */
export function stateClaimIn({ spec }: Pod): string | undefined {
  return spec.volumes?.find(({ name }) => name === STATE_POD_VOLUME)?.persistentVolumeClaim?.claimName;
}

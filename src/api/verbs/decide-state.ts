/**
 * Decides the verbs adoptstate and releasestate, which resolve a state conflict: a claim is marked as the persistent
 * state of a VM and has another owner (state-conflict.ts). Part of the table in decide-verb.ts; see
 * docs/persistent-state.md. Pure.
 *
 * Adopting takes the claim from its owner, but never from a VM, an instance or a pod that uses it. Releasing removes
 * the marks of this VM and nothing else.
 */
import { findStateBlocker } from '#api/storage/claim-vms.ts';
import { claimNamesOf } from '#api/storage/claim-names.ts';
import { MIGRATION_NAME_LABEL } from '#api/names.ts';
import {
  findStateClaim,
  hasLegacyNameOf,
  hasNoOwner,
  isMarkedFor,
  RELEASED,
  reportedStateClaim,
  STATE_LABEL,
  stateAnnotationOf,
  stateKeyOf,
  stateKeysOfClaim,
  stateOwnerOf,
  type StateOwner,
} from '#api/storage/persistent-state.ts';
import { listConflictingClaims, isRestoring, listOtherMarks } from '#api/storage/state-conflict.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { vmOwnerReference } from '#api/virtual-machine/owner.ts';
import { isFinal, VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { PersistentVolumeClaim, Pod } from '#kube/core-kinds.ts';
import { controllerOf, controllerUid, isDeleting, type Stored } from '#kube/meta.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import type { VerbDecision, VerbWorld, RefusedDecision, JsonPatchOperation, StateWorld } from '#api/verbs/verb.ts';

type Claim = Stored<PersistentVolumeClaim>;
type Vm = Stored<VirtualMachine>;
type Vmi = Stored<VirtualMachineInstance>;

interface ClaimRequest {
  readonly vm: Vm;
  readonly owner: StateOwner;
  readonly claim: Claim;
  readonly state: StateWorld;
  readonly vmi: Vmi | undefined;
}

/** Decides adoptstate. A repeated call changes nothing. */
export function decideAdoptState(world: VerbWorld): VerbDecision {
  const request = findClaimRequest(world);
  if ('denied' in request) return request;
  const { vm, owner, claim, state } = request;
  const cannot = (reason: string) =>
    refuse(world, `cannot hand over PersistentVolumeClaim "${claim.metadata.name}": ${reason}`);
  if (isDeleting(vm)) return cannot('VM is being deleted');
  const own = findStateClaim(state.claims, owner);
  if (own?.metadata.uid === claim.metadata.uid && controllerUid(own) === owner.ownerUid)
    return { code: 200, allowed: [] };
  if (own !== undefined) return cannot(`the VM has its state in PersistentVolumeClaim "${own.metadata.name}"`);
  const reason = explainNoConflict(request) ?? findClaimUser(request);
  return reason === undefined ? patchClaim(claim, buildAdoption(request)) : cannot(reason);
}

export function decideReleaseState(world: VerbWorld): VerbDecision {
  const request = findClaimRequest(world);
  if ('denied' in request) return request;
  const { claim } = request;
  const reason = explainNoConflict(request);
  if (reason === undefined) return patchClaim(claim, buildRelease(request));
  return refuse(world, `cannot release PersistentVolumeClaim "${claim.metadata.name}": ${reason}`);
}

function findClaimRequest(world: VerbWorld): ClaimRequest | RefusedDecision {
  const { name, vm, vmi, state, options } = world;
  if (vm === undefined) return { denied: { code: 404, message: 'not found', on: 'virtualmachine', name } };
  const named = options?.stateClaim ?? { name: '', uid: '' };
  const claim = state?.claims.find(({ metadata }) => metadata.name === named.name);
  if (state === undefined || claim === undefined) {
    return refuse(world, `PersistentVolumeClaim "${named.name}" does not exist`);
  }
  if (claim.metadata.uid !== named.uid) {
    return refuse(world, `PersistentVolumeClaim "${named.name}" has the uid ${claim.metadata.uid}, not ${named.uid}`);
  }
  const diskUserOf = (disk: string) => findStateBlocker(state.vms, disk, vm.metadata)?.metadata.name;
  return { vm, owner: { ...stateOwnerOf(vm), diskUserOf }, claim, state, vmi };
}

/** Returns why the claim does not prevent the VM from starting, or undefined if it does. */
function explainNoConflict({ owner, claim, state }: ClaimRequest): string | undefined {
  const { vmName, ownerUid } = owner;
  const { uid } = claim.metadata;
  if (!isMarkedFor(claim, vmName) && !hasLegacyNameOf(claim, vmName)) return 'it is not marked as the state of this VM';
  if (isDeleting(claim)) return 'it is being deleted';
  if (controllerUid(claim) === ownerUid) return 'it belongs to this VM';
  if (isRestoring(claim)) {
    return `VirtualMachineRestore "${controllerOf(claim)?.name ?? ''}" has it; wait until the restore is finished`;
  }
  if (listConflictingClaims(state.claims, owner).some(({ metadata }) => metadata.uid === uid)) return undefined;
  const isMarkedForOthers = listOtherMarks(claim, vmName).length > 0;
  if (hasNoOwner(claim) && !isMarkedForOthers) return 'it has no other owner, so the VM can use it already';
  return isMarkedForOthers || !isMarkedFor(claim, vmName)
    ? 'it is the state of another VM'
    : 'another claim has taken its place';
}

/**
 * Describes the object that uses the claim, or returns undefined if none does. Owning the claim does not count as use.
 */
function findClaimUser(request: ClaimRequest): string | undefined {
  return (
    findMigration(request) ??
    findStateUser(request) ??
    findMarkedMachine(request) ??
    findDiskUser(request) ??
    findPodUser(request)
  );
}

function findMigration({ claim }: ClaimRequest): string | undefined {
  const migration = claim.metadata.labels?.[MIGRATION_NAME_LABEL];
  return migration === undefined ? undefined : `migration "${migration}" is copying data into it`;
}

/** Describes another machine that the claim is marked for. Marks of deleted VMs do not count. */
function findMarkedMachine({ owner, claim, state }: ClaimRequest): string | undefined {
  const keys = listOtherMarks(claim, owner.vmName);
  const other = [...state.vms, ...state.vmis].find(({ metadata }) => keys.includes(stateKeyOf(metadata.name)));
  return other && `it is marked for ${other.kind} "${other.metadata.name}", too; release it there first`;
}

/** Describes another machine whose state is in the claim, also one whose persistence is switched off. */
function findStateUser({ vm, claim, state }: ClaimRequest): string | undefined {
  const { uid, name } = claim.metadata;
  const keys = stateKeysOfClaim(claim);
  const others = [...state.vms, ...state.vmis].filter((one) => stateOwnerOf(one).ownerUid !== vm.metadata.uid);
  const user = others.find((one) => {
    const owner = stateOwnerOf(one);
    const mayHave = keys.includes(stateKeyOf(owner.vmName));
    const reported = one.kind === VIRTUAL_MACHINE_INSTANCES.kind ? reportedStateClaim(one as Vmi) : undefined;
    return reported === name || (mayHave && findStateClaim(state.claims, owner)?.metadata.uid === uid);
  });
  return user && `it holds the persistent state of ${user.kind} "${user.metadata.name}"`;
}

function findDiskUser({ vm, claim, state }: ClaimRequest): string | undefined {
  const { name } = claim.metadata;
  const user =
    findStateBlocker(state.vms, name, vm.metadata) ??
    state.vmis.find((vmi) => !isFinal(vmi) && claimNamesOf(vmi.spec).includes(name));
  return user && `it is a disk of ${user.kind} "${user.metadata.name}"`;
}

/** Describes a pod that mounts the claim. The launcher pod of this VM does not count: it may use the claim already. */
function findPodUser({ vm, vmi, claim, state }: ClaimRequest): string | undefined {
  const own = vmi !== undefined && controllerUid(vmi) === vm.metadata.uid ? vmi.metadata.uid : undefined;
  const pod = state.pods.find(
    (one) => !hasEnded(one) && (own === undefined || controllerUid(one) !== own) && mounts(one, claim.metadata.name),
  );
  return pod && `Pod "${pod.metadata.name}" uses it`;
}

function mounts({ spec }: Pod, claimName: string): boolean {
  return spec.volumes?.some(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName === claimName) === true;
}

type Metadata = Pick<PersistentVolumeClaim['metadata'], 'labels' | 'annotations' | 'ownerReferences'>;

/**
 * Returns the metadata of the adopted claim. Marks of deleted VMs are removed, so that the claim is this VM's alone.
 */
function buildAdoption({ vm, owner, claim }: ClaimRequest): Metadata {
  const outdated = listOtherMarks(claim, owner.vmName).map((key) => `${STATE_LABEL}-${key}`);
  const { labels = {}, annotations = {} } = claim.metadata;
  return {
    labels: { ...labels, [STATE_LABEL]: stateKeyOf(owner.vmName) },
    annotations: { ...without(annotations, outdated), [stateAnnotationOf(owner.vmName)]: 'true' },
    ownerReferences: [vmOwnerReference(vm)],
  };
}

function buildRelease({ owner, claim }: ClaimRequest): Metadata {
  const { vmName } = owner;
  const { labels = {}, annotations = {} } = claim.metadata;
  const annotation = stateAnnotationOf(vmName);
  const releaseMark = hasLegacyNameOf(claim, vmName) ? { [annotation]: RELEASED } : {};
  return {
    labels: labels[STATE_LABEL] === stateKeyOf(vmName) ? without(labels, [STATE_LABEL]) : labels,
    annotations: { ...without(annotations, [annotation]), ...releaseMark },
  };
}

function without(map: Readonly<Record<string, string>>, keys: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(map).filter(([key]) => !keys.includes(key)));
}

/** Replaces whole fields, and only on the revision that the decision is based on. */
function patchClaim({ metadata }: Claim, changed: Metadata): VerbDecision {
  const { name, uid, resourceVersion } = metadata;
  const patch: JsonPatchOperation[] = [
    { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
    ...Object.entries(changed).map(([field, value]) => ({ op: 'add' as const, path: `/metadata/${field}`, value })),
  ];
  return { code: 200, allowed: [{ do: 'patchClaim', name, uid, patch }] };
}

function refuse({ name }: VerbWorld, message: string): RefusedDecision {
  return { denied: { code: 409, message, on: 'virtualmachine', name } };
}

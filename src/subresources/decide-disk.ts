/** Decides whether the content of a disk of a VM may be read or replaced now, and which node has it. Pure. */
import { PROTECTED_VMS_ANNOTATION } from '#api/protection/delete-protection.ts';
import { UPLOAD_ANNOTATION, type DiskVerb } from '#api/storage/disk-stream.ts';
import {
  KUBEVIRT_GROUP,
  LOCAL_PROVISIONER,
  NODE_TAINT,
  SCHEDULABLE_LABEL,
  VOLUME_NODE_ANNOTATION,
} from '#api/names.ts';
import { refuseClaim, refuseSize } from '#api/storage/local-class.ts';
import { STATE_LABEL, STATE_VOLUME, stateKeyOf } from '#api/storage/persistent-state.ts';
import { isMarkedAsState } from '#api/storage/snapshot-state.ts';
import { storageSizeOf, type StorageSize } from '#api/storage/storage-size.ts';
import { type VirtualMachine, runStrategyOf } from '#api/virtual-machine/kind.ts';
import { type VirtualMachineInstance, isFinal } from '#api/virtual-machine-instance/kind.ts';
import { ApiError, badRequest, conflict, notFound } from '#kube/api-error.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Node, PersistentVolume, PersistentVolumeClaim, StorageClass } from '#kube/core-kinds.ts';
import { isDefaultClass } from '#kube/default-class.ts';
import { controllerUid, isDeleting, type Stored } from '#kube/meta.ts';
import { SELECTED_NODE } from '#kube/volume-keys.ts';
import { HOLD_MESSAGES } from '#api/verbs/verb.ts';

interface DiskTransferRequest {
  readonly verb: DiskVerb;
  readonly vm: Stored<VirtualMachine>;
  readonly vmi?: VirtualMachineInstance | undefined;
  readonly volume: string;
  /** The claim with the persistent state of the VM, if it has content. */
  readonly state?: Stored<PersistentVolumeClaim> | undefined;
}

/** Returns the name of the claim, or the refusal. */
export function findDiskClaim(access: DiskTransferRequest): { readonly claim: string } | ApiError {
  const { verb, vm, vmi, volume } = access;
  const refuse = (why: string) => conflict({ group: KUBEVIRT_GROUP, plural: 'virtualmachine' }, vm.metadata.name, why);
  if (volume === '') return badRequest(`${verb} needs the name of a volume: ?volume=NAME`);
  const claim = volume === STATE_VOLUME ? stateClaim(access) : diskClaim(access);
  if (claim instanceof ApiError) return claim;
  if (isDeleting(vm)) return refuse('VM is being deleted');
  const isRunning = vmi !== undefined && controllerUid(vmi) === vm.metadata.uid && !isFinal(vmi);
  if (isRunning) {
    return refuse(
      verb === 'exportdisk'
        ? 'VM is running; stop it with "virtctl stop", or restore a snapshot of it to a new VM and export that'
        : 'VM is running',
    );
  }
  const { snapshotInProgress, restoreInProgress } = vm.status ?? {};
  if (restoreInProgress) return refuse(HOLD_MESSAGES.template(restoreInProgress));
  if (verb === 'exportdisk') return { claim };
  if (snapshotInProgress) return refuse(HOLD_MESSAGES.disks(snapshotInProgress));
  const strategy = runStrategyOf(vm);
  if (strategy === 'Halted') return { claim };
  return refuse(`VM has the run strategy ${strategy ?? 'unknown'}; set it to Halted first`);
}

function diskClaim({ vm, volume }: DiskTransferRequest): string | ApiError {
  const found = vm.spec.template.spec?.volumes?.find(({ name }) => name === volume);
  if (found === undefined) return badRequest(`VM has no volume ${JSON.stringify(volume)}`);
  const quoted = JSON.stringify(volume);
  return (
    found.persistentVolumeClaim?.claimName ??
    badRequest(`volume ${quoted} is not a PersistentVolumeClaim: it has no persistent content`)
  );
}

/** Returns the state claim. It must have the label by which the node distinguishes it from a disk. */
function stateClaim({ vm, volume, state }: DiskTransferRequest): string | ApiError {
  if (state === undefined) return notFound({ group: '', plural: 'persistentvolumeclaims' }, volume);
  const { name } = state.metadata;
  if (isMarkedAsState(state)) return name;
  const label = `${STATE_LABEL}: ${stateKeyOf(vm.metadata.name)}`;
  return conflict({ group: '', plural: 'persistentvolumeclaims' }, name, `it lacks the label ${label}`);
}

/** Returns why the content of the claim cannot be replaced, or undefined if it can. */
export function checkUpload({ metadata }: PersistentVolumeClaim): ApiError | undefined {
  const { name = '', annotations = {} } = metadata;
  const refuse = (why: string) => conflict({ group: '', plural: 'persistentvolumeclaims' }, name, why);
  // Replacing content destroys it, so delete protection applies here, too.
  const owners = annotations[PROTECTED_VMS_ANNOTATION];
  if (owners !== undefined) return refuse(`it is used by VMs that are protected from deletion: ${owners}`);
  if (annotations[UPLOAD_ANNOTATION] === 'true') return undefined;
  return refuse(`it does not wait for content; it needs the annotation ${UPLOAD_ANNOTATION}: "true"`);
}

/** A claim without a volume, and everything on which its volume depends. */
interface VolumeWorld {
  readonly claim: Stored<PersistentVolumeClaim>;
  readonly classes: readonly Stored<StorageClass>[];
  readonly nodes: readonly Stored<Node>[];
  /** The node that must have the volume, because other disks of the VM are there. */
  readonly requiredNode?: string | undefined;
}

/**
 * Returns why no volume can ever be provisioned for the claim, or undefined if one may be. A volume that exists may be bound
 * to the claim nevertheless.
 */
export function findVolumeError({ claim, classes, nodes, requiredNode }: VolumeWorld): string | undefined {
  const storageClass = classOf(claim, classes);
  if (storageClass === undefined) return describeMissingClass(claim, classes);
  if (storageClass.provisioner !== LOCAL_PROVISIONER) return undefined;
  const node = claim.metadata.annotations?.[SELECTED_NODE] ?? requiredNode;
  const refusal = refuseClaim(claim, storageClass);
  if (refusal !== undefined) return refusal;
  const tooLarge = refuseSize(claim, storageClass, { sizes: sizesOf(nodes), node });
  return tooLarge && `StorageClass "${storageClass.metadata.name}" cannot provide its volume: ${tooLarge}`;
}

/** Returns the class of the claim. A claim without one gets the default class, possibly later. */
function classOf(
  { spec: { storageClassName } }: PersistentVolumeClaim,
  classes: readonly Stored<StorageClass>[],
): Stored<StorageClass> | undefined {
  if (storageClassName === undefined) return classes.find(isDefaultClass);
  return classes.find(({ metadata }) => metadata.name === storageClassName);
}

function describeMissingClass({ spec }: PersistentVolumeClaim, classes: readonly Stored<StorageClass>[]): string {
  const names = classes.map((one) => one.metadata.name).sort();
  const choice = names.length === 0 ? 'there is none; create one' : `choose one of ${names.join(', ')}`;
  if (spec.storageClassName === undefined) return `it has no storage class, and there is no default class; ${choice}`;
  return spec.storageClassName === ''
    ? `it excludes storage classes, and there is no volume without one; ${choice}`
    : `its storage class "${spec.storageClassName}" does not exist; ${choice}`;
}

function sizesOf(nodes: readonly Stored<Node>[]): Map<string, StorageSize> {
  return new Map(
    nodes.flatMap((node) => {
      const size = storageSizeOf(node);
      return size === undefined ? [] : [[node.metadata.name, size] as const];
    }),
  );
}

/** Reports whether the volume, which an administrator has created, can be bound to the claim. */
export function canBind({ spec, metadata }: PersistentVolumeClaim, volume: PersistentVolume): boolean {
  const { storageClassName = '', claimRef } = volume.spec;
  if (storageClassName !== (spec.storageClassName ?? '')) return false;
  return claimRef === undefined || (claimRef.namespace === metadata.namespace && claimRef.name === metadata.name);
}

/** Returns the node that has the data, or undefined if all nodes can reach it. */
export function soleDataNodeOf({ metadata, spec }: PersistentVolume): string | undefined {
  const attributes = spec.csi?.volumeAttributes ?? {};
  if (attributes['scope'] === 'shared') return undefined;
  return metadata.annotations?.[VOLUME_NODE_ANNOTATION] ?? attributes['node'];
}

const preventsPods = ({ key, effect }: { readonly key: string; readonly effect: string }) =>
  key !== NODE_TAINT.key && (effect === 'NoSchedule' || effect === 'NoExecute');

/** Returns the first of our nodes, by name, that is ready and accepts pods, or undefined if there is none. */
export function pickNode(nodes: readonly Stored<Node>[]): string | undefined {
  return nodes
    .filter(isUsable)
    .map(({ metadata }) => metadata.name)
    .sort()[0];
}

/** Returns the node for the volume of the claim: like pickNode, of the nodes that can hold the volume. */
export function pickVolumeNode({ claim, classes, nodes }: Omit<VolumeWorld, 'requiredNode'>): string | undefined {
  const storageClass = classOf(claim, classes);
  const sizes = sizesOf(nodes);
  const canHold = ({ metadata: { name: node } }: Stored<Node>) =>
    storageClass === undefined || refuseSize(claim, storageClass, { sizes, node }) === undefined;
  return pickNode(nodes.filter(canHold));
}

function isUsable({ spec, status, metadata }: Stored<Node>): boolean {
  const isReady = findCondition(status?.conditions, 'Ready')?.status === 'True';
  // In an existing cluster most nodes have no node agent, and ours accept only pods of VMs.
  const isOurs = metadata.labels?.[SCHEDULABLE_LABEL] === 'true';
  const isRepelled = spec?.taints?.some(preventsPods) === true;
  return isReady && isOurs && !isRepelled && spec?.unschedulable !== true && metadata.deletionTimestamp === undefined;
}

/** Decides whether the content of a disk of a VM may be read or replaced now, and which node has it. Pure. */
import { PROTECTED_VMS_ANNOTATION } from '#api/protection/delete-protection.ts';
import { UPLOAD_ANNOTATION, type DiskVerb } from '#api/storage/disk-stream.ts';
import { KUBEVIRT_GROUP, NODE_TAINT, SCHEDULABLE_LABEL, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import { STATE_LABEL, STATE_VOLUME, stateKeyOf } from '#api/storage/persistent-state.ts';
import { isMarkedAsState } from '#api/storage/snapshot-state.ts';
import { type VirtualMachine, runStrategyOf } from '#api/virtual-machine/kind.ts';
import { type VirtualMachineInstance, isFinal } from '#api/virtual-machine-instance/kind.ts';
import { ApiError, badRequest, conflict, notFound } from '#kube/api-error.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Node, PersistentVolume, PersistentVolumeClaim, StorageClass } from '#kube/core-kinds.ts';
import { isDefaultClass } from '#kube/default-class.ts';
import { controllerUid, isDeleting, type Stored } from '#kube/meta.ts';
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

/** Returns why a claim whose class is not among `classes` can never be bound, or undefined if it may be. */
export function findClassError(
  { spec, metadata }: PersistentVolumeClaim,
  classes: readonly Stored<StorageClass>[],
  volumes: readonly Stored<PersistentVolume>[],
): string | undefined {
  const { storageClassName: name = '' } = spec;
  const mayBind = ({ spec: { storageClassName = '', claimRef } }: PersistentVolume) =>
    storageClassName === name &&
    (claimRef === undefined || (claimRef.namespace === metadata.namespace && claimRef.name === metadata.name));
  // A claim without a class gets the default class, possibly later.
  if (spec.storageClassName === undefined && classes.some(isDefaultClass)) return undefined;
  if (volumes.some(mayBind)) return undefined;
  const names = classes.map((one) => one.metadata.name).sort();
  const choice = names.length === 0 ? 'there is none; create one' : `choose one of ${names.join(', ')}`;
  return name === ''
    ? `it has no storage class, and there is no default class; ${choice}`
    : `its storage class "${name}" does not exist; ${choice}`;
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
  const usable = nodes.filter(({ spec, status, metadata }) => {
    const isReady = findCondition(status?.conditions, 'Ready')?.status === 'True';
    // In an existing cluster most nodes have no node agent, and ours accept only pods of VMs.
    const isOurs = metadata.labels?.[SCHEDULABLE_LABEL] === 'true';
    const isRepelled = spec?.taints?.some(preventsPods) === true;
    return isReady && isOurs && !isRepelled && spec?.unschedulable !== true && metadata.deletionTimestamp === undefined;
  });
  return usable.map(({ metadata }) => metadata.name).sort()[0];
}

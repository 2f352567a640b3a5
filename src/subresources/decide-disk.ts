/** Whether the content of a disk of a VM may be read or replaced now, and where it is. Pure. */
import { HELD, isFinal, runStrategyOf } from '#api/can.ts';
import { PROTECTED_VMS_ANNOTATION } from '#api/delete-protection.ts';
import { UPLOAD_ANNOTATION, type DiskVerb } from '#api/disk-stream.ts';
import { KUBEVIRT_GROUP, NODE_TAINT, SCHEDULABLE_LABEL, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import { STATE_LABEL, STATE_VOLUME, stateKeyOf } from '#api/persistent-state.ts';
import { isMarkedAsState } from '#api/snapshot-state.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { ApiError, badRequest, conflict, notFound } from '#kube/api-error.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Node, PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { controllerUid, isDeleting, type Stored } from '#kube/meta.ts';

export interface DiskAsked {
  readonly verb: DiskVerb;
  readonly vm: Stored<VirtualMachine>;
  readonly vmi?: VirtualMachineInstance | undefined;
  readonly volume: string;
  /** The claim that holds the persistent state of the VM, where there is one with something in it. */
  readonly state?: Stored<PersistentVolumeClaim> | undefined;
}

/** The name of the claim, or why not. */
export function claimToOpen(asked: DiskAsked): { readonly claim: string } | ApiError {
  const { verb, vm, vmi, volume } = asked;
  const refused = (why: string) => conflict({ group: KUBEVIRT_GROUP, plural: 'virtualmachine' }, vm.metadata.name, why);
  if (volume === '') return badRequest(`${verb} needs the name of a volume: ?volume=NAME`);
  const claim = volume === STATE_VOLUME ? stateClaim(asked) : diskClaim(asked);
  if (claim instanceof ApiError) return claim;
  if (isDeleting(vm)) return refused('VM is being deleted');
  const runs = vmi !== undefined && controllerUid(vmi) === vm.metadata.uid && !isFinal(vmi);
  if (runs) {
    return refused(
      verb === 'exportdisk' ? 'VM is running: stop it, or take a snapshot and export that' : 'VM is running',
    );
  }
  const { snapshotInProgress, restoreInProgress } = vm.status ?? {};
  if (restoreInProgress) return refused(HELD.template(restoreInProgress));
  if (verb === 'exportdisk') return { claim };
  if (snapshotInProgress) return refused(HELD.disks(snapshotInProgress));
  const strategy = runStrategyOf(vm);
  return strategy === 'Halted' ? { claim } : refused(`VM is to run (${strategy ?? 'unknown'}); expected Halted`);
}

function diskClaim({ vm, volume }: DiskAsked): string | ApiError {
  const found = vm.spec.template.spec?.volumes?.find(({ name }) => name === volume);
  if (found === undefined) return badRequest(`VM has no volume ${JSON.stringify(volume)}`);
  const quoted = JSON.stringify(volume);
  return (
    found.persistentVolumeClaim?.claimName ??
    badRequest(`volume ${quoted} is not of a PersistentVolumeClaim: it has no content to keep`)
  );
}

/** The node tells by the marks that it is no disk. */
function stateClaim({ vm, volume, state }: DiskAsked): string | ApiError {
  if (state === undefined) return notFound({ group: '', plural: 'persistentvolumeclaims' }, volume);
  const { name } = state.metadata;
  if (isMarkedAsState(state)) return name;
  const label = `${STATE_LABEL}: ${stateKeyOf(vm.metadata.name)}`;
  return conflict({ group: '', plural: 'persistentvolumeclaims' }, name, `it has no label (${label})`);
}

/** Why the content of the claim cannot be replaced. */
export function uploadFault({ metadata }: PersistentVolumeClaim): ApiError | undefined {
  const { name = '', annotations = {} } = metadata;
  const refused = (why: string) => conflict({ group: '', plural: 'persistentvolumeclaims' }, name, why);
  // Content that is replaced is lost, too.
  const owners = annotations[PROTECTED_VMS_ANNOTATION];
  if (owners !== undefined) return refused(`VMs that are protected from deletion need it: ${owners}`);
  if (annotations[UPLOAD_ANNOTATION] === 'true') return undefined;
  return refused(`it does not wait for content (annotation ${UPLOAD_ANNOTATION}: "true")`);
}

/** The node that has the data; undefined where all of them reach it. */
export function holderOf({ metadata, spec }: PersistentVolume): string | undefined {
  const attributes = spec.csi?.volumeAttributes ?? {};
  if (attributes['scope'] === 'shared') return undefined;
  return metadata.annotations?.[VOLUME_NODE_ANNOTATION] ?? attributes['node'];
}

const isRepelling = ({ key, effect }: { readonly key: string; readonly effect: string }) =>
  key !== NODE_TAINT.key && (effect === 'NoSchedule' || effect === 'NoExecute');

/** The first by name of ours that work and take something new; undefined where there is none. */
export function pickNode(nodes: readonly Stored<Node>[]): string | undefined {
  const able = nodes.filter(({ spec, status, metadata }) => {
    const isReady = findCondition(status?.conditions, 'Ready')?.status === 'True';
    // On a cluster of others most nodes know nothing of disks, and ours keep all pods away but those of VMs.
    const isOurs = metadata.labels?.[SCHEDULABLE_LABEL] === 'true';
    const repels = spec?.taints?.some(isRepelling) === true;
    return isReady && isOurs && !repels && spec?.unschedulable !== true && metadata.deletionTimestamp === undefined;
  });
  return able.map(({ metadata }) => metadata.name).sort()[0];
}

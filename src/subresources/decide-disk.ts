/** Whether the content of a disk of a VM may be read or replaced now, and where it is. Pure. */
import { HELD, isFinal, runStrategyOf } from '#api/can.ts';
import { PROTECTED_VMS_ANNOTATION } from '#api/delete-protection.ts';
import { UPLOAD_ANNOTATION, type DiskVerb } from '#api/disk-stream.ts';
import { KUBEVIRT_GROUP, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { badRequest, conflict, type ApiError } from '#kube/api-error.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Node, PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { controllerUid, isDeleting, type Stored } from '#kube/meta.ts';

export interface DiskAsked {
  readonly verb: DiskVerb;
  readonly vm: Stored<VirtualMachine>;
  readonly vmi?: VirtualMachineInstance | undefined;
  readonly volume: string;
}

/** The name of the claim, or why not. */
export function claimToOpen({ verb, vm, vmi, volume }: DiskAsked): { readonly claim: string } | ApiError {
  const refused = (why: string) => conflict({ group: KUBEVIRT_GROUP, plural: 'virtualmachine' }, vm.metadata.name, why);
  if (volume === '') return badRequest(`${verb} needs the name of a volume: ?volume=NAME`);
  const found = vm.spec.template.spec?.volumes?.find(({ name }) => name === volume);
  if (found === undefined) return badRequest(`VM has no volume ${JSON.stringify(volume)}`);
  const claim = found.persistentVolumeClaim?.claimName;
  if (claim === undefined) {
    return badRequest(`volume ${JSON.stringify(volume)} is not of a PersistentVolumeClaim: it has no content to keep`);
  }
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

/** The first by name of those that work and take something new; undefined where there is none. */
export function pickNode(nodes: readonly Stored<Node>[]): string | undefined {
  const able = nodes.filter(({ spec, status, metadata }) => {
    const isReady = findCondition(status?.conditions, 'Ready')?.status === 'True';
    const repels = spec?.taints?.some(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute') === true;
    return isReady && !repels && spec?.unschedulable !== true && metadata.deletionTimestamp === undefined;
  });
  return able.map(({ metadata }) => metadata.name).sort()[0];
}

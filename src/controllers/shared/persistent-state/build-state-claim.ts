/** Builds the empty claim for the persistent state of a VM, which is created before the first start. Pure. */
import {
  stateAnnotationOf,
  stateClaimName,
  stateKeyOf,
  STATE_LABEL,
  stateOwnerOf,
} from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { StateStorage } from '#controllers/shared/persistent-state/select-storage.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { apiVersionOf, type OwnerReference, type Stored } from '#kube/meta.ts';

type Owner = Stored<VirtualMachine> | Stored<VirtualMachineInstance>;

/** Lets CDI raise the size of the claim to the minimum of the storage. */
const APPLY_PROFILE_LABEL = 'cdi.kubevirt.io/applyStorageProfile';

/** `suffix`: stateSuffixOf, or any other text that makes the name unique. */
export function buildStateClaim(owner: Owner, storage: StateStorage, suffix: string): PersistentVolumeClaim {
  const { vmName } = stateOwnerOf(owner);
  const { storageClassName, volumeMode, accessMode, size } = storage;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: stateClaimName(vmName, suffix),
      namespace: owner.metadata.namespace,
      labels: { [STATE_LABEL]: stateKeyOf(vmName), [APPLY_PROFILE_LABEL]: 'true' },
      annotations: { [stateAnnotationOf(vmName)]: 'true' },
      ownerReferences: [ownerReferenceOf(owner)],
    },
    spec: { storageClassName, volumeMode, accessModes: [accessMode], resources: { requests: { storage: size } } },
  };
}

/**
 * Returns a reference to the VM, also if `owner` is its instance. The state of an instance without a VM is deleted with
 * it.
 */
function ownerReferenceOf(owner: Owner): OwnerReference {
  const { vmName: name, ownerUid: uid } = stateOwnerOf(owner);
  const hasNoVm = owner.kind === VIRTUAL_MACHINE_INSTANCES.kind && uid === owner.metadata.uid;
  const type = hasNoVm ? VIRTUAL_MACHINE_INSTANCES : VIRTUAL_MACHINES;
  return { apiVersion: apiVersionOf(type), kind: type.kind, name, uid, controller: true, blockOwnerDeletion: true };
}

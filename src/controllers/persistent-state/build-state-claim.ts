/** The claim that holds the persistent state of a VM, empty, as it is made before the first start. Pure. */
import { stateAnnotationOf, stateClaimName, stateKeyOf, STATE_LABEL, stateOwnerOf } from '#api/persistent-state.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { StateStorage } from '#controllers/persistent-state/select-storage.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { apiVersionOf, type OwnerReference, type Stored } from '#kube/meta.ts';

type Owner = Stored<VirtualMachine> | Stored<VirtualMachineInstance>;

/** Lets CDI enlarge the claim to what the storage can do. */
const APPLY_PROFILE_LABEL = 'cdi.kubevirt.io/applyStorageProfile';

/** `suffix`: stateSuffixOf, or anything that makes the name another one. */
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
      ownerReferences: [referenceTo(owner)],
    },
    spec: { storageClassName, volumeMode, accessModes: [accessMode], resources: { requests: { storage: size } } },
  };
}

/** To the VM, also where its instance is at hand; a stand-alone instance takes its state along when it goes. */
function referenceTo(owner: Owner): OwnerReference {
  const { vmName: name, ownerUid: uid } = stateOwnerOf(owner);
  const standsAlone = owner.kind === VIRTUAL_MACHINE_INSTANCES.kind && uid === owner.metadata.uid;
  const type = standsAlone ? VIRTUAL_MACHINE_INSTANCES : VIRTUAL_MACHINES;
  return { apiVersion: apiVersionOf(type), kind: type.kind, name, uid, controller: true, blockOwnerDeletion: true };
}

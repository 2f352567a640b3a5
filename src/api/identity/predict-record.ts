/** Predicts the identity record of a VM that has none yet; the record is created before the first start. Pure. */
import { importedDevicesOf } from '#api/devices/imported-devices.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { vmOwnerReference } from '#api/virtual-machine/owner.ts';
import { VIRTUAL_MACHINE_IDENTITIES, type VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { apiVersionOf, type Stored } from '#kube/meta.ts';

/** Includes the devices of an imported machine. */
export function predictRecord(vm: Stored<VirtualMachine>): VirtualMachineIdentity {
  const { namespace, name, creationTimestamp } = vm.metadata;
  const { uuid, serial } = vm.spec.template.spec?.domain.firmware ?? {};
  const imported = importedDevicesOf(vm);
  const isKnown = imported !== undefined && !('fault' in imported);
  return {
    apiVersion: apiVersionOf(VIRTUAL_MACHINE_IDENTITIES),
    kind: VIRTUAL_MACHINE_IDENTITIES.kind,
    metadata: { namespace, name, creationTimestamp, ownerReferences: [vmOwnerReference(vm)] },
    spec: { firmware: { ...(uuid && { uuid }), ...(serial && { serial }) } },
    ...(isKnown && {
      status: {
        ...(imported.machine !== undefined && { machine: { type: imported.machine } }),
        devices: [...imported.devices],
      },
    }),
  };
}

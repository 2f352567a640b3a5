/** Reads a VM of the cluster as the description that export formats are written from. */
import { claimNamesOf } from '#api/storage/claim-names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { findObject, findRecord, readVm } from '#cli/connection/vm-objects.ts';
import type { MachineDescription } from '#formats/machine.ts';
import { describeVm } from '#formats/vm/describe-vm.ts';
import { PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

interface ExportedMachine {
  readonly vm: Stored<VirtualMachine>;
  readonly machine: MachineDescription;
}

/** Reads the machine. `report` receives notes on what the file cannot express. */
export async function exportMachine(
  api: Pick<ApiConnection, 'get' | 'namespace'>,
  name: string,
  report: (line: string) => void,
): Promise<ExportedMachine> {
  const vm = await readVm(api, name);
  const record = await findRecord(api, vm);
  const claims: PersistentVolumeClaim[] = [];
  for (const claim of claimNamesOf(vm.spec.template.spec ?? {})) {
    const found = await findObject(api, PERSISTENT_VOLUME_CLAIMS, claim);
    if (found !== undefined) claims.push(found);
  }
  if (record?.status?.devices === undefined) {
    report(`Note: VM ${name} has not run yet, so its devices have no addresses`);
  }
  const machine = describeVm(vm, record, claims);
  for (const note of machine.notes) report(`Note: ${note}`);
  return { vm, machine };
}

/** Reads a VM of the cluster as the description that export formats are written from. */
import { claimNamesOf } from '#api/storage/claim-names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { findObject, findRecord, readVm } from '#cli/connection/vm-objects.ts';
import type { DescribedDisk, MachineDescription } from '#formats/machine.ts';
import { includeSecrets, listMissingSecrets } from '#formats/vm/cloud-init.ts';
import { describeVm } from '#formats/vm/describe-vm.ts';
import { PERSISTENT_VOLUME_CLAIMS, SECRETS, type PersistentVolumeClaim, type Secret } from '#kube/core-kinds.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
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
    report(
      vm.status?.created === true
        ? `Note: the devices of VM ${name}, which has just started, are not known yet, so they have no addresses; export it again`
        : `Note: VM ${name} has not run yet, so its devices have no addresses`,
    );
  }
  const machine = describeVm(vm, record, claims);
  for (const note of machine.notes) report(`Note: ${note}`);
  return { vm, machine };
}

/** Adds the cloud-init data of Secrets. Throws CommandError if a Secret or a key in it is missing. */
export async function includeCloudInitSecrets(
  api: Pick<ApiConnection, 'get' | 'namespace'>,
  machine: MachineDescription,
): Promise<MachineDescription> {
  const secrets = new Map<string, Secret>();
  const disks: DescribedDisk[] = [];
  for (const disk of machine.disks) {
    const { cloudInit } = disk;
    const names = cloudInit === undefined ? [] : listMissingSecrets(cloudInit);
    if (cloudInit === undefined || names.length === 0) {
      disks.push(disk);
      continue;
    }
    for (const name of names) {
      const found = await findObject(api, SECRETS, name);
      if (found !== undefined) secrets.set(name, found);
    }
    const included = includeSecrets(cloudInit, secrets);
    const [missing] = listMissingSecrets(included);
    if (missing !== undefined) {
      const why = secrets.has(missing) ? 'has no cloud-init data' : 'does not exist';
      throw new CommandError(
        `Cannot export VM ${machine.name}: the Secret ${missing} of the disk ${disk.name} ${why}; correct it, or leave out --include-secrets`,
      );
    }
    disks.push({ ...disk, cloudInit: included });
  }
  return { ...machine, disks };
}

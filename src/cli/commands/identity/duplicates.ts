/** virtctl identity duplicates */
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { defineCommand } from '#cli/command.ts';
import {
  addressDuplicatesAsValue,
  addressDuplicatesTable,
  findAddressDuplicates,
  toListedAddressHolders,
  toRecordedIdentity,
  type ListedAddressHolder,
  type RecordedIdentities,
} from '#cli/commands/identity/duplicate-addresses.ts';
import {
  findMacDuplicates,
  macDuplicatesAsValue,
  macDuplicatesTable,
  toListedMacHolders,
  type ListedMacHolder,
} from '#cli/commands/identity/duplicate-macs.ts';
import {
  duplicatesAsValue,
  findUuidDuplicates,
  duplicatesTable,
  toListedUuidHolder,
  type ListedUuidHolder,
} from '#cli/commands/identity/duplicate-uuids.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { formatValue, outputFlag } from '#cli/output-format.ts';
import { listCollection } from '#cli/connection/list-collection.ts';
import { vmCollectionPath } from '#cli/connection/verb-path.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { collectionPath } from '#client/resource-path.ts';
import { ApiError } from '#kube/api-error.ts';

const HINT = 'Finding duplicates requires permission to list virtualmachines.kubevirt.io in all namespaces.';

export const identityDuplicates = defineCommand({
  name: 'duplicates',
  usage: '',
  summary: 'List the virtual machines that share a firmware uuid, a MAC address or an IP address.',
  details:
    'Searches all namespaces. With --namespace, lists only duplicates that involve a virtual machine of that namespace.\n' +
    'Ignores virtual machines that are being deleted. Compares the MAC addresses in the templates and those that are\n' +
    'derived from the virtual machines, and the IP addresses on the default network that are recorded or asked for.',
  example: [
    '  # List all virtual machines that share a part of their identity with another one:',
    '  virtctl identity duplicates',
    '',
    "  # List the duplicates that involve the namespace 'team-a':",
    '  virtctl identity duplicates -n team-a',
  ].join('\n'),
  flags: { output: { ...outputFlag, help: 'Output format: json or yaml; a table by default.' } },
  args: 0,
  async run({ flags: { output }, connect, namespace, print, report }) {
    const vms = await listHolders(await connect(), report);
    const uuids = findUuidDuplicates(
      vms.flatMap(({ uuid }) => uuid ?? []),
      namespace,
    );
    const macs = findMacDuplicates(
      vms.flatMap((vm) => vm.macs),
      namespace,
    );
    const addresses = findAddressDuplicates(
      vms.flatMap((vm) => vm.addresses),
      namespace,
    );
    const tables = [
      ...(uuids.length === 0 ? [] : [duplicatesTable(uuids)]),
      ...(macs.length === 0 ? [] : [macDuplicatesTable(macs)]),
      ...(addresses.length === 0 ? [] : [addressDuplicatesTable(addresses)]),
    ];
    const values = [...duplicatesAsValue(uuids), ...macDuplicatesAsValue(macs), ...addressDuplicatesAsValue(addresses)];
    if (output !== undefined) print(formatValue(values, output));
    else if (tables.length > 0) print(tables.join('\n\n'));
    else if (namespace === undefined)
      print('No two VirtualMachines have the same firmware uuid, MAC address or IP address.');
    else print(`No VirtualMachine in namespace ${namespace} shares its firmware uuid, a MAC address or an IP address.`);
  },
});

interface ListedHolder {
  readonly uuid: ListedUuidHolder | undefined;
  readonly macs: readonly ListedMacHolder[];
  readonly addresses: readonly ListedAddressHolder[];
}

async function listHolders(api: ApiConnection, report: (line: string) => void): Promise<ListedHolder[]> {
  const warnings: string[] = [];
  const recorded = await listRecorded(api, report, (warning) => warnings.push(warning));
  const toHolder = (vm: unknown) => ({
    uuid: toListedUuidHolder(vm),
    macs: toListedMacHolders(vm),
    addresses: toListedAddressHolders(vm, recorded),
  });
  try {
    const holders = await listCollection(api, { path: vmCollectionPath('virtualmachines') }, toHolder, report);
    for (const warning of warnings) report(warning);
    return holders;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 403) throw error;
    throw new CommandError(`${error.message}\n${HINT}`, { cause: error });
  }
}

/** Returns the records that have addresses. Without permission, only the addresses that VMs ask for are compared. */
async function listRecorded(
  api: ApiConnection,
  report: (line: string) => void,
  warn: (line: string) => void,
): Promise<RecordedIdentities> {
  const path = collectionPath(VIRTUAL_MACHINE_IDENTITIES);
  try {
    return new Map(await listCollection(api, { path }, toRecordedIdentity, report));
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 403) throw error;
    warn(`Warning: recorded IP addresses are not compared: ${error.message}`);
    return new Map();
  }
}

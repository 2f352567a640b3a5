/** virtctl identity show */
import {
  buildBusTree,
  DEVICE_COLUMNS,
  buildDeviceRows,
  summarizeIdentity,
  renderTree,
} from '#api/identity/identity-table.ts';
import { predictRecord } from '#api/identity/predict-record.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { isRecordLost } from '#api/virtual-machine-identity/record-state.ts';
import { defineCommand } from '#cli/command.ts';
import { formatValue, outputFlag } from '#cli/output-format.ts';
import { alignedTable } from '#lib/terminal/table.ts';
import { findRecord, readVm } from '#cli/connection/vm-objects.ts';

export const identityShow = defineCommand({
  name: 'show',
  usage: 'VM',
  summary: 'Show the identity of a virtual machine and the addresses of its devices.',
  details:
    'Shows the identity record, which the guest sees at every start. "virtctl identity diff" shows where the template of\n' +
    'the virtual machine differs from it. Before the first start, shows what was imported, if anything.',
  example: [
    "  # Show the identity and the devices of the virtual machine 'db':",
    '  virtctl identity show db',
    '',
    '  # Print it as JSON:',
    '  virtctl identity show db -o json',
  ].join('\n'),
  flags: { output: outputFlag },
  args: 1,
  async run({ args: [name = ''], flags, connect, print, report }) {
    const format = flags.output;
    const api = await connect();
    const vm = await readVm(api, name);
    const found = await findRecord(api, vm);
    if (isRecordLost(vm, found)) report(LOST);
    const record = found ?? predictRecord(vm);
    print(format === undefined ? renderIdentity(vm, record) : formatValue(toValue(vm, record), format));
  },
});

const LOST = 'Warning: the identity record is lost; see the condition IdentityRecordLost of the VM for what to do.';

function renderIdentity(vm: VirtualMachine, record: VirtualMachineIdentity): string {
  const { uuid, serial, machine, macs, addresses = [], unchangedSince, lastChange } = summarizeIdentity(vm, record);
  const { devices = [] } = record.status ?? {};
  const facts = [
    ['Name:', `${record.metadata.namespace}/${record.metadata.name}`],
    ['UUID:', orNone(uuid)],
    ['Serial:', orNone(serial)],
    ['Machine:', machine === '' ? '<not started yet>' : machine],
    ...macs.map(({ name, mac }) => [`MAC of ${name}:`, orNone(mac)]),
    ...addresses.map(({ name, addresses: own }) => [`Address of ${name}:`, own.join(', ')]),
    ['Unchanged since:', unchangedSince === '' ? '<not started yet>' : `${unchangedSince} (${lastChange})`],
  ];
  if (devices.length === 0) return alignedTable(facts);
  const tree = renderTree(buildBusTree(record.status ?? {}));
  return [alignedTable(facts), '', alignedTable([DEVICE_COLUMNS, ...buildDeviceRows(devices)]), '', ...tree].join('\n');
}

function toValue(vm: VirtualMachine, record: VirtualMachineIdentity): object {
  const { namespace, name } = record.metadata;
  const { lastChange: _, ...summary } = summarizeIdentity(vm, record);
  return { namespace, name, ...summary, devices: record.status?.devices ?? [] };
}

const orNone = (text: string) => (text === '' ? '<none>' : text);

/** virtctl identity history */
import { renderChangeRows } from '#api/identity/identity-change-text.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { HistoryEntry } from '#api/virtual-machine-identity/kind.ts';
import { defineCommand } from '#cli/command.ts';
import { formatValue, outputFlag } from '#cli/output-format.ts';
import { alignedTable } from '#lib/terminal/table.ts';
import { findRecord, readVm } from '#cli/connection/vm-objects.ts';

export const identityHistory = defineCommand({
  name: 'history',
  usage: 'VM',
  summary: 'List every change to the identity of a virtual machine, oldest first.',
  details:
    'Covers the firmware uuid, serial, SMBIOS strings, MAC and IP addresses, machine type, devices, their addresses and\n' +
    'boot order, and the claim with TPM and EFI state. For each change: the time, old and new value, cause, and the user who\n' +
    'requested it, if known. The record keeps the last 50 entries. With -o json, entries contain complete devices.',
  example: [
    "  # List what changed in the virtual machine 'db', when and why:",
    '  virtctl identity history db',
    '',
    '  # Print every value before and after each change:',
    '  virtctl identity history db -o json',
  ].join('\n'),
  flags: { output: outputFlag },
  args: 1,
  async run({ args: [name = ''], flags, connect, print }) {
    const format = flags.output;
    const api = await connect();
    const record = await findRecord(api, await readVm(api, name));
    const history = record?.status?.history ?? [];
    if (format !== undefined) print(formatValue(history, format));
    else if (history.length === 0) print(`VirtualMachine ${name} has no history: it has not been started yet.`);
    else print(historyTable(history, record?.status?.devices));
  },
});

const COLUMNS = ['TIME', 'CHANGE', 'FROM', 'TO', 'CAUSE', 'BY'];

/** Returns a table with a row for each change, with addresses as in `identity show`. `devices` are those of the record. */
export function historyTable(history: readonly HistoryEntry[], devices: readonly LearnedDevice[] = []): string {
  const recorded = new Map(devices.map((row) => [row.id, row]));
  const rows = history.flatMap((entry) =>
    renderChangeRows(entry, recorded).map(({ what, from, to }) => [
      entry.at ?? '',
      what,
      from,
      to,
      entry.cause ?? '',
      entry.by ?? '',
    ]),
  );
  return alignedTable([COLUMNS, ...rows.map((row) => row.map((cell) => (cell === '' ? '-' : cell)))]);
}

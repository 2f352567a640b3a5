/** virtctl identity history */
import { defineCommand } from '#cli/command.ts';
import { alignedTable, formatValue, outputFlag, outputFormat } from '#cli/output-format.ts';
import { findRecord, readVm } from '#cli/vm-objects.ts';

export const identityHistory = defineCommand({
  name: 'history',
  usage: 'VM',
  summary: 'List what has changed in the hardware of a virtual machine, oldest first.',
  details: 'The record keeps the last 50 changes.',
  example: ["  # What has changed in the virtual machine 'db', when and why:", '  virtctl identity history db'].join(
    '\n',
  ),
  flags: { output: outputFlag },
  args: 1,
  async run({ args: [name = ''], flags, connect, print }) {
    const format = outputFormat(flags.output);
    const api = await connect();
    const record = await findRecord(api, await readVm(api, name));
    const history = record?.status?.history ?? [];
    if (format !== undefined) print(formatValue(history, format));
    else if (history.length === 0) print(`Nothing has changed in VirtualMachine ${name} since it was made.`);
    else print(alignedTable([COLUMNS, ...history.map(({ at = '', what = '', cause = '' }) => [at, what, cause])]));
  },
});

const COLUMNS = ['TIME', 'CHANGE', 'CAUSE'];

/** virtctl import ovf */
import { defineCommand } from '#cli/command.ts';
import { importFlags, importMachine, importOptions } from '#cli/import-machine.ts';
import { openImport } from '#cli/import-source.ts';

export const importOvf = defineCommand({
  name: 'ovf',
  usage: 'FILE',
  summary: 'Make a virtual machine from an OVF or OVA.',
  details:
    'OVFs of oVirt 3.0 to 4.x, of Selfsame, and of others as far as they keep to the standard. The virtual machine has\n' +
    'the uuid, the serial, the MAC addresses and the device addresses of the file, and does not run yet. A file that is\n' +
    'damaged or contradicts itself is refused as a whole. docs/ovf.md tells what is taken over.',
  example: [
    '  # From an archive with disks:',
    '  virtctl import ovf db.ova',
    '',
    '  # From an OVF whose disk is in a claim already:',
    '  virtctl import ovf db.ovf --claim rootdisk=db-root',
    '',
    '  # What would be made of it:',
    '  virtctl import ovf db.ova --name db2 --new-identity --dry-run',
  ].join('\n'),
  flags: importFlags,
  args: 1,
  async run({ args: [path = ''], flags, connect, terminal, clock }) {
    const api = await connect();
    const options = importOptions(flags, api.namespace);
    const { machine, notes, files } = await openImport(path, new Set(options.claims.keys()));
    for (const note of notes) terminal.stderr.write(`Note: ${note}\n`);
    await importMachine(path, machine, { options, dryRun: flags.dryRun, files }, { api, terminal, clock });
  },
});

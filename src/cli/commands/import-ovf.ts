/** virtctl import ovf */
import { defineCommand } from '#cli/parsing/command.ts';
import { importFlags, importMachine, importOptions } from '#cli/transfer/import-machine.ts';
import { openImport } from '#cli/transfer/import-source.ts';

export const importOvf = defineCommand({
  name: 'ovf',
  usage: 'FILE',
  summary: 'Import a virtual machine from an OVF or OVA.',
  details:
    'Reads OVFs of oVirt 3.0 to 4.x, of Selfsame, and third-party OVFs that follow the standard. The virtual machine keeps\n' +
    'the uuid, the serial, the MAC addresses and the device addresses of the file, and is not started. A damaged or\n' +
    'inconsistent file is refused as a whole. See docs/ovf.md for what is imported.',
  example: [
    '  # Import an archive with disks:',
    '  virtctl import ovf db.ova',
    '',
    '  # Import an OVF whose disk is already in a claim:',
    '  virtctl import ovf db.ovf --claim rootdisk=db-root',
    '',
    '  # Show what would be created:',
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

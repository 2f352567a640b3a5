/** virtctl import ...: virtual machines from OVF and libvirt formats. */
import { defineCommand, type VirtctlGroup } from '#cli/command.ts';
import { importFlags, importMachine, importOptions } from '#cli/transfer/import-machine.ts';
import { importError, openImport } from '#cli/transfer/import-source.ts';
import { readLocalFile } from '#cli/transfer/local-files.ts';
import { FileFormatError } from '#formats/findings.ts';
import { readLibvirt } from '#formats/libvirt/read-libvirt.ts';
import type { MachineDescription } from '#formats/machine.ts';
import { XML_LIMITS } from '#lib/xml/xml-scan.ts';

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
  async run({ args: [path = ''], flags, connect, report, status, terminal }) {
    const api = await connect();
    const options = importOptions(flags, api.namespace);
    const { machine, notes, files } = await openImport(path, new Set(options.claims.keys()));
    for (const note of notes) report(`Note: ${note}`);
    await importMachine(path, machine, { options, dryRun: flags.dryRun, files }, { api, status, terminal });
  },
});

const importLibvirt = defineCommand({
  name: 'libvirt',
  usage: 'FILE',
  summary: 'Import a virtual machine from a libvirt domain.',
  details:
    'The file is the output of "virsh dumpxml". The virtual machine keeps the uuid, the serial, the MAC addresses and the\n' +
    'device addresses of the domain, and is not started. Name the claims that hold its disks with --claim.',
  example: [
    "  # Import the domain 'db', whose disk vda was copied into the claim 'db-root':",
    '  virsh dumpxml db > db.xml',
    '  virtctl import libvirt db.xml --claim vda=db-root',
  ].join('\n'),
  flags: importFlags,
  args: 1,
  async run({ args: [path = ''], flags, connect, status, terminal }) {
    const api = await connect();
    const options = importOptions(flags, api.namespace);
    const machine = readDomain(path, await readLocalFile(path, XML_LIMITS.bytes));
    await importMachine(path, machine, { options, dryRun: flags.dryRun }, { api, status, terminal });
  },
});

function readDomain(path: string, content: Buffer): MachineDescription {
  try {
    return readLibvirt(content);
  } catch (error) {
    if (!(error instanceof FileFormatError)) throw error;
    throw importError(path, error.errors, error);
  }
}

export const importGroup: VirtctlGroup = {
  name: 'import',
  summary: 'Import virtual machines from OVF and libvirt formats.',
  commands: [importLibvirt, importOvf],
};

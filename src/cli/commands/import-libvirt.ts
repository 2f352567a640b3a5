/** virtctl import libvirt */
import { defineCommand } from '#cli/parsing/command.ts';
import { importFlags, importMachine, importOptions } from '#cli/transfer/import-machine.ts';
import { importError } from '#cli/transfer/import-source.ts';
import { readLocalFile } from '#cli/transfer/local-files.ts';
import { FileFormatError } from '#formats/findings.ts';
import { readLibvirt } from '#formats/libvirt/read-libvirt.ts';
import type { MachineDescription } from '#formats/machine.ts';
import { XML_LIMITS } from '#lib/xml/xml-scan.ts';

export const importLibvirt = defineCommand({
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
  async run({ args: [path = ''], flags, connect, terminal, clock }) {
    const api = await connect();
    const options = importOptions(flags, api.namespace);
    const machine = readDomain(path, await readLocalFile(path, XML_LIMITS.bytes));
    await importMachine(path, machine, { options, dryRun: flags.dryRun }, { api, terminal, clock });
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

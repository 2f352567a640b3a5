/** virtctl export ...: virtual machines in OVF and libvirt formats. */
import { exportOvf } from '#cli/commands/export/ovf.ts';
import { defineCommand, type VirtctlGroup } from '#cli/command.ts';
import { exportMachine } from '#cli/transfer/export-machine.ts';
import { switchFlag, textFlag } from '#lib/command-line/flag.ts';
import { writeLocalFile } from '#cli/transfer/local-files.ts';
import { writeLibvirt } from '#formats/libvirt/write-libvirt.ts';

const exportLibvirt = defineCommand({
  name: 'libvirt',
  usage: 'VM',
  summary: 'Export a virtual machine as a libvirt domain, with the devices and addresses of its last run.',
  details:
    'Each device keeps the address that the guest last saw. Disks are referenced by path; to export their content, use\n' +
    '"virtctl export ovf --ova".',
  example: ["  # Export the virtual machine 'db' for 'virsh define':", '  virtctl export libvirt db -o db.xml'].join(
    '\n',
  ),
  flags: {
    output: textFlag({ name: 'output', short: 'o', help: 'The file to write; - for standard output.' }, 'file'),
    images: textFlag(
      {
        name: 'image-directory',
        help: 'The directory where libvirt will find the disks; /var/lib/libvirt/images by default.',
      },
      'directory',
    ),
    force: switchFlag({ name: 'force', help: 'Overwrite an existing file.' }),
  },
  args: 1,
  async run({ args: [name = ''], flags: { output = '-', images, force }, connect, report, terminal }) {
    const { machine } = await exportMachine(await connect(), name, report);
    const { xml, notes } = writeLibvirt(machine, images === undefined ? {} : { imageDirectory: images });
    for (const note of notes) if (!machine.notes.includes(note)) report(`Note: ${note}`);
    if (output === '-') terminal.stdout.write(xml);
    else await writeLocalFile(output, [Buffer.from(xml)], { force });
  },
});

export const exportGroup: VirtctlGroup = {
  name: 'export',
  summary: 'Export virtual machines to OVF and libvirt formats.',
  commands: [exportLibvirt, exportOvf],
};

/** virtctl export libvirt */
import { defineCommand } from '#cli/command.ts';
import { exportMachine } from '#cli/export-machine.ts';
import { switchFlag, textFlag } from '#cli/flags.ts';
import { writeWhole } from '#cli/local-files.ts';
import { writeLibvirt } from '#formats/libvirt/write-libvirt.ts';

export const exportLibvirt = defineCommand({
  name: 'libvirt',
  usage: 'VM',
  summary: 'Write a virtual machine as a domain of libvirt, as it was last seen.',
  details:
    'Each device has the address at which the guest saw it last. Disks are named by paths; their content is exported by\n' +
    '"virtctl export ovf --ova".',
  example: [
    "  # The domain of the virtual machine 'db', for 'virsh define':",
    '  virtctl export libvirt db -o db.xml',
  ].join('\n'),
  flags: {
    output: textFlag({ name: 'output', short: 'o', help: 'The file to write; - for standard output.' }, 'file'),
    images: textFlag(
      { name: 'image-directory', help: 'Where libvirt will find the disks; /var/lib/libvirt/images unless set.' },
      'directory',
    ),
    force: switchFlag({ name: 'force', help: 'Replace a file that is there already.' }),
  },
  args: 1,
  async run({ args: [name = ''], flags: { output = '-', images, force }, connect, terminal }) {
    const say = (line: string) => void terminal.stderr.write(`${line}\n`);
    const { machine } = await exportMachine(await connect(), name, say);
    const { xml, notes } = writeLibvirt(machine, images === undefined ? {} : { imageDirectory: images });
    for (const note of notes) if (!machine.notes.includes(note)) say(`Note: ${note}`);
    if (output === '-') terminal.stdout.write(xml);
    else await writeWhole(output, [Buffer.from(xml)], { force });
  },
});

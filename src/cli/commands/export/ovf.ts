/** virtctl export ovf */
import { defineCommand } from '#cli/command.ts';
import { exportMachine, includeCloudInitSecrets } from '#cli/transfer/export-machine.ts';
import { exportOva } from '#cli/transfer/export-ova.ts';
import { UsageError } from '#lib/command-line/command-error.ts';
import { choiceFlag, switchFlag, textFlag } from '#lib/command-line/flag.ts';
import { writeLocalFile } from '#cli/transfer/local-files.ts';
import type { MachineDescription } from '#formats/machine.ts';
import { writeOvf } from '#formats/ovf/write-ovf.ts';
import { listMissingSecrets } from '#formats/vm/cloud-init.ts';

export const exportOvf = defineCommand({
  name: 'ovf',
  usage: 'VM',
  summary: 'Export a virtual machine as OVF, or with its disks as OVA.',
  details:
    'The file contains the whole identity of the machine: uuid, serial, MAC addresses, and every device with its address.\n' +
    'Disks and persistent TPM and EFI state can be exported only while the virtual machine is stopped. See docs/ovf.md for\n' +
    'the format. The cloud-init data of the virtual machine is included, unless it is in Secrets.',
  example: [
    "  # Export the description of the virtual machine 'db':",
    '  virtctl export ovf db',
    '  virtctl export ovf db -o db.ovf',
    '',
    '  # Include its disks:',
    '  virtctl export ovf db --ova db.ova',
    '  virtctl export ovf db --ova db.ova --disk-format raw',
  ].join('\n'),
  flags: {
    output: textFlag({ name: 'output', short: 'o', help: 'The file to write; - for standard output.' }, 'file'),
    ova: textFlag({ name: 'ova', help: 'The OVA file to write, with the disks.' }, 'file'),
    diskFormat: choiceFlag(
      {
        name: 'disk-format',
        value: 'format',
        help: 'The format of the disks in the OVA: qcow2 is compressed and without holes, raw has the full size.',
      },
      ['qcow2', 'raw'],
      'qcow2',
    ),
    secrets: switchFlag({
      name: 'include-secrets',
      help:
        'Include cloud-init data that is in Secrets. Everyone who can read the file can read it. Files are readable ' +
        'only by you.',
    }),
    force: switchFlag({ name: 'force', help: 'Overwrite an existing file.' }),
  },
  args: 1,
  async run({ args: [name = ''], flags, connect, report, status, terminal }) {
    const { output = '-', ova, diskFormat, secrets, force } = flags;
    if (ova !== undefined && output !== '-') throw new UsageError('--output and --ova cannot be combined');
    if (/\.ova$/i.test(output)) throw new UsageError('--output writes an OVF without disks; use --ova FILE for an OVA');
    const api = await connect();
    const described = (await exportMachine(api, name, report)).machine;
    const machine = secrets ? await includeCloudInitSecrets(api, described) : described;
    reportMissingSecrets(machine, report);
    const options = { force };
    if (ova !== undefined) {
      await exportOva(api, machine, { ...options, vm: name, path: ova, diskFormat }, status);
      return report(`VM ${name} was exported to ${ova}`);
    }
    const text = writeOvf(machine);
    if (output === '-') terminal.stdout.write(text);
    else await writeLocalFile(output, [Buffer.from(text)], options);
    if (machine.disks.some(({ file }) => file !== undefined))
      report('Note: an OVF does not contain disks; use --ova FILE to include them');
    if (machine.state !== undefined)
      report('Note: an OVF does not contain persistent TPM and EFI state; use --ova FILE to include it');
  },
});

function reportMissingSecrets({ disks }: MachineDescription, report: (line: string) => void): void {
  for (const { name, cloudInit } of disks) {
    const secrets = cloudInit === undefined ? [] : listMissingSecrets(cloudInit);
    if (secrets.length === 0) continue;
    report(
      `Note: the cloud-init data of the disk ${name} is in the Secret ${secrets.join(', ')} and is not exported; use --include-secrets to include it`,
    );
  }
}

/** virtctl export ovf */
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { defineCommand } from '#cli/command.ts';
import { openDisk } from '#cli/transfer/disk-transfer.ts';
import { exportMachine, includeCloudInitSecrets } from '#cli/transfer/export-machine.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { switchFlag, textFlag } from '#lib/command-line/flag.ts';
import { writeLocalFile } from '#cli/transfer/local-files.ts';
import type { StatusOutput } from '#lib/terminal/status-output.ts';
import { trackTransfer } from '#lib/terminal/track-transfer.ts';
import type { DiskHeader } from '#api/storage/disk-stream.ts';
import { STATE_VOLUME } from '#api/storage/persistent-state.ts';
import type { DescribedDisk, DescribedState, MachineDescription } from '#formats/machine.ts';
import { writeOva, type OvaFile } from '#formats/ova/write-ova.ts';
import { writeOvf } from '#formats/ovf/write-ovf.ts';
import { listMissingSecrets } from '#formats/vm/cloud-init.ts';
import { isApiError } from '#kube/api-error.ts';

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
  ].join('\n'),
  flags: {
    output: textFlag({ name: 'output', short: 'o', help: 'The file to write; - for standard output.' }, 'file'),
    ova: textFlag({ name: 'ova', help: 'The OVA file to write, with the disks.' }, 'file'),
    secrets: switchFlag({
      name: 'include-secrets',
      help:
        'Include cloud-init data that is in Secrets. Everyone who can read the file can read it, so the file is ' +
        'readable only by you.',
    }),
    force: switchFlag({ name: 'force', help: 'Overwrite an existing file.' }),
  },
  args: 1,
  async run({ args: [name = ''], flags: { output = '-', ova, secrets, force }, connect, report, status, terminal }) {
    if (ova !== undefined && output !== '-') throw new CommandError('--output and --ova cannot be combined');
    const api = await connect();
    const described = (await exportMachine(api, name, report)).machine;
    const machine = secrets ? await includeCloudInitSecrets(api, described) : described;
    reportMissingSecrets(machine, report);
    const options = { force, isPrivate: secrets };
    if (ova !== undefined) {
      await writeLocalFile(ova, await buildOva(api, name, machine, status), options);
      return report(`VM ${name} was exported to ${ova}`);
    }
    const text = writeOvf(machine);
    if (output === '-') terminal.stdout.write(text);
    else await writeLocalFile(output, [Buffer.from(text)], options);
    if (machine.disks.some(hasContent)) report('Note: an OVF does not contain disks; use --ova to include them');
    if (machine.state !== undefined)
      report('Note: an OVF does not contain persistent TPM and EFI state; use --ova to include it');
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

const progressName = (name: string) => (name === STATE_VOLUME ? 'persistent state' : `disk ${name}`);

type ContentDisk = DescribedDisk & { readonly file: string };
const hasContent = (disk: DescribedDisk): disk is ContentDisk => disk.file !== undefined;

/** Reads all sizes first, because an archive stores the size before the content. */
async function buildOva(
  api: ApiConnection,
  vm: string,
  machine: MachineDescription,
  status: StatusOutput,
): Promise<AsyncIterable<Uint8Array>> {
  const headers = new Map<string, DiskHeader>();
  for (const { name } of machine.disks.filter(hasContent)) {
    const disk = await openDisk(api, vm, name);
    disk.close();
    headers.set(name, disk.header);
  }
  const state = machine.state && (await addStateFile(api, vm, machine.state, headers, status));
  const disks = machine.disks.map((disk) => addHeader(disk, headers.get(disk.name)));
  const descriptor = writeOvf({ ...machine, disks, ...(state && { state }) });
  const ofState = state?.file === undefined ? [] : [{ name: STATE_VOLUME, file: state.file }];
  const files = diskFiles(api, vm, [...disks.filter(hasContent), ...ofState], headers, status);
  return writeOva({ name: machine.name, descriptor, files });
}

/** Adds the state file, unless the VM never ran and has none. */
async function addStateFile(
  api: ApiConnection,
  vm: string,
  state: DescribedState,
  headers: Map<string, DiskHeader>,
  { report }: StatusOutput,
): Promise<DescribedState> {
  try {
    const { header, close } = await openDisk(api, vm, STATE_VOLUME);
    close();
    headers.set(STATE_VOLUME, header);
    return { ...state, file: `${vm}-state.bin`, sizeBytes: header.size };
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
    report('Note: the VM has no persistent TPM and EFI state yet');
    return state;
  }
}

function addHeader(disk: DescribedDisk, header: DiskHeader | undefined): DescribedDisk {
  if (header === undefined) return disk;
  const { format, size, virtualSize = size } = header;
  return { ...disk, format, sizeBytes: virtualSize, file: `${disk.name}.${format === 'raw' ? 'img' : format}` };
}

async function* diskFiles(
  api: ApiConnection,
  vm: string,
  disks: readonly Pick<ContentDisk, 'name' | 'file'>[],
  headers: ReadonlyMap<string, DiskHeader>,
  status: StatusOutput,
): AsyncGenerator<OvaFile> {
  for (const { name, file } of disks) {
    const disk = await openDisk(api, vm, name);
    try {
      const { size, format } = disk.header;
      const reported = headers.get(name);
      if (reported?.size !== size || reported.format !== format)
        throw new CommandError(`Cannot export volume ${name}: it changed during the export; try again`);
      const content = trackTransfer(status, { what: progressName(name), size }, disk.chunks());
      yield { name: file, size, content };
    } finally {
      disk.close();
    }
  }
}

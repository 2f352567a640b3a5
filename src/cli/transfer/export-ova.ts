/**
 * Writes a VM with its disks and its persistent state as an OVA. Disks become compressed qcow2 images. An archive stores
 * the size of a file before its content, so they are written to temporary files beside the OVA first.
 */
import { STATE_VOLUME } from '#api/storage/persistent-state.ts';
import type { DiskHeader, DiskStreamFormat } from '#api/storage/disk-stream.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { openDisk } from '#cli/transfer/disk-transfer.ts';
import { refuseExisting, requireSpace, SpoolFile, writeLocalFile } from '#cli/transfer/local-files.ts';
import type { DescribedDisk, DescribedState, MachineDescription } from '#formats/machine.ts';
import { writeOva, type OvaFile } from '#formats/ova/write-ova.ts';
import { writeOvf } from '#formats/ovf/write-ovf.ts';
import { readQcow2 } from '#formats/qcow2/read-qcow2.ts';
import { writeQcow2 } from '#formats/qcow2/write-qcow2.ts';
import { isApiError } from '#kube/api-error.ts';
import { CommandError, explainFailure } from '#lib/command-line/command-error.ts';
import { errorMessage } from '#lib/error-message.ts';
import type { StatusOutput } from '#lib/terminal/status-output.ts';
import { trackTransfer } from '#lib/terminal/track-transfer.ts';

interface OvaOptions {
  readonly vm: string;
  /** The file to write. */
  readonly path: string;
  readonly force: boolean;
  readonly diskFormat: DiskStreamFormat;
}

/** The content of one file of the archive. */
interface ExportedVolume {
  /** The name of the volume. */
  readonly name: string;
  readonly header: DiskHeader;
  /** Set if the content is compressed first. */
  spool?: { readonly file: SpoolFile; readonly size: number };
}

/** Throws CommandError. Leaves no partial file behind. */
export async function exportOva(
  api: ApiConnection,
  machine: MachineDescription,
  options: OvaOptions,
  status: StatusOutput,
): Promise<void> {
  const { vm, path, force } = options;
  await refuseExisting(path, force);
  const volumes = new Map<string, ExportedVolume>();
  for (const { name } of machine.disks.filter(hasContent)) {
    const header = readVolumeHeader(api, vm, name);
    volumes.set(name, await explainFailure(`Cannot export volume ${name} of VM ${vm}: `, header));
  }
  const state = machine.state && (await addStateFile(api, vm, machine.state, volumes, status));
  const compressed = machine.disks.flatMap((disk) => {
    const volume = volumes.get(disk.name);
    return volume !== undefined && isCompressible(disk, volume, options, status) ? [volume] : [];
  });
  const whole = [...volumes.values()].filter((volume) => !compressed.includes(volume));
  const wholeBytes = sum(whole.map(({ header }) => header.size));
  await requireSpace(path, wholeBytes + sum(compressed.map(({ header }) => header.allocatedBytes ?? 0)));
  try {
    for (const volume of compressed) volume.spool = await spoolDisk(api, volume, options, status);
    // The space of each temporary file is released after it was copied.
    await requireSpace(path, wholeBytes + Math.max(0, ...compressed.map(({ spool }) => spool?.size ?? 0)));
    const disks = machine.disks.map((disk) => addFile(disk, volumes.get(disk.name)));
    const descriptor = writeOvf({ ...machine, disks, ...(state && { state }) });
    const ofState = state?.file === undefined ? [] : [{ name: STATE_VOLUME, file: state.file }];
    const files = ovaFiles(api, vm, [...disks.filter(hasContent), ...ofState], volumes, status);
    await writeLocalFile(path, writeOva({ name: machine.name, descriptor, files }), options);
  } finally {
    for (const { spool } of compressed) await spool?.file.close();
  }
}

type ContentDisk = DescribedDisk & { readonly file: string };
const hasContent = (disk: DescribedDisk): disk is ContentDisk => disk.file !== undefined;

const progressName = (name: string) => (name === STATE_VOLUME ? 'persistent state' : `disk ${name}`);

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);

async function readVolumeHeader(api: ApiConnection, vm: string, name: string): Promise<ExportedVolume> {
  const { header, close } = await openDisk(api, vm, name);
  close();
  return { name, header };
}

/** Adds the state file, unless the VM never ran and has none. */
async function addStateFile(
  api: ApiConnection,
  vm: string,
  state: DescribedState,
  volumes: Map<string, ExportedVolume>,
  { report }: StatusOutput,
): Promise<DescribedState> {
  try {
    const volume = await readVolumeHeader(api, vm, STATE_VOLUME);
    volumes.set(STATE_VOLUME, volume);
    return { ...state, file: `${vm}-state.bin`, sizeBytes: volume.header.size };
  } catch (error) {
    if (!isApiError(error, 'NotFound')) {
      const problem = `Cannot export the persistent state of VM ${vm}: ${errorMessage(error)}`;
      throw new CommandError(problem, { cause: error });
    }
    report('Note: the VM has no persistent TPM and EFI state yet');
    return state;
  }
}

/** Discs stay as they are, because other programs expect ISO images. */
function isCompressible(
  { name, media }: DescribedDisk,
  { header: { format } }: ExportedVolume,
  { diskFormat }: OvaOptions,
  { report }: StatusOutput,
): boolean {
  if (diskFormat === 'raw' && format !== 'raw')
    report(`Note: the disk ${name} is stored as ${format} and is exported in this format`);
  return diskFormat === 'qcow2' && format === 'raw' && (media === 'disk' || media === 'lun');
}

/** Writes a compressed image and reads it back. Throws CommandError. */
async function spoolDisk(
  api: ApiConnection,
  { name, header }: ExportedVolume,
  { vm, path }: OvaOptions,
  status: StatusOutput,
): Promise<{ readonly file: SpoolFile; readonly size: number }> {
  const file = await SpoolFile.createBeside(path);
  try {
    const disk = await openUnchanged(api, vm, name, header);
    try {
      const chunks = trackTransfer(status, { what: progressName(name), size: header.size }, disk.chunks());
      const { fileBytes, ...written } = await writeQcow2(chunks, file);
      const read = await readQcow2(file);
      if (read.digest !== written.digest || read.virtualBytes !== written.virtualBytes)
        throw new Error('the temporary file does not contain what was written to it; check the file system');
      return { file, size: fileBytes };
    } finally {
      disk.close();
    }
  } catch (cause) {
    await file.close();
    if (cause instanceof CommandError) throw cause;
    throw new CommandError(`Cannot export volume ${name} of VM ${vm}: ${errorMessage(cause)}`, { cause });
  }
}

async function openUnchanged(api: ApiConnection, vm: string, name: string, { size, format }: DiskHeader) {
  const disk = await openDisk(api, vm, name);
  if (disk.header.size === size && disk.header.format === format) return disk;
  disk.close();
  throw new CommandError(`Cannot export volume ${name}: it changed during the export; try again`);
}

function addFile(disk: DescribedDisk, volume: ExportedVolume | undefined): DescribedDisk {
  if (volume === undefined) return disk;
  const { size, virtualSize = size } = volume.header;
  const format = volume.spool === undefined ? volume.header.format : 'qcow2';
  return { ...disk, format, sizeBytes: virtualSize, file: `${disk.name}.${format === 'raw' ? 'img' : format}` };
}

async function* ovaFiles(
  api: ApiConnection,
  vm: string,
  disks: readonly Pick<ContentDisk, 'name' | 'file'>[],
  volumes: ReadonlyMap<string, ExportedVolume>,
  status: StatusOutput,
): AsyncGenerator<OvaFile> {
  for (const { name, file } of disks) {
    const volume = volumes.get(name);
    if (volume === undefined) continue;
    const { spool, header } = volume;
    if (spool !== undefined) {
      const { size } = spool;
      yield {
        name: file,
        size,
        content: trackTransfer(status, { what: `writing ${file}`, size }, spool.file.chunks(size)),
      };
      await spool.file.close();
      delete volume.spool;
      continue;
    }
    const disk = await openUnchanged(api, vm, name, header);
    try {
      const { size } = header;
      yield { name: file, size, content: trackTransfer(status, { what: progressName(name), size }, disk.chunks()) };
    } finally {
      disk.close();
    }
  }
}

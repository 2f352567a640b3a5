/** Whether a file of an OVA, or beside an OVF, is what the descriptor says of it. Pure. */
import { MAX_STATE_ARCHIVE_BYTES } from '#api/snapshot-state.ts';
import { quoted } from '#formats/faults.ts';
import type { MachineDescription } from '#formats/machine.ts';

/** qcow2 has tables besides the data; more than this is another disk. */
const QCOW2_OVERHEAD = 1.05;
const QCOW2_SLACK = 64 * 1024 * 1024;

/** What is wrong with it; undefined where it may be taken. */
export function fileFault(
  { disks, state }: Pick<MachineDescription, 'disks' | 'state'>,
  file: { readonly name: string; readonly size: number },
): string | undefined {
  if (state?.file === file.name) {
    if (file.size <= MAX_STATE_ARCHIVE_BYTES) return undefined;
    return `the file ${quoted(file.name)} has ${file.size} bytes, more than a persistent state may have`;
  }
  const disk = disks.find((known) => known.file === file.name);
  if (disk === undefined) return `the file ${quoted(file.name)} belongs to no disk`;
  const { sizeBytes, format } = disk;
  if (sizeBytes === undefined) return undefined;
  const most = format === 'raw' ? sizeBytes : sizeBytes * QCOW2_OVERHEAD + QCOW2_SLACK;
  if (file.size <= most) return undefined;
  return `the file ${quoted(file.name)} has ${file.size} bytes, but its disk ${quoted(disk.name)} has ${sizeBytes}`;
}

/** Files that disks name and that are not among these. */
export function missingFiles({ disks }: Pick<MachineDescription, 'disks'>, names: ReadonlySet<string>): string[] {
  return disks.flatMap(({ file }) => (file === undefined || names.has(file) ? [] : [file]));
}

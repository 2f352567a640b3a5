/** Checks a file of an OVA, or beside an OVF, against the descriptor. Pure. */
import { MAX_STATE_ARCHIVE_BYTES } from '#api/storage/snapshot-state.ts';
import type { MachineDescription } from '#formats/machine.ts';
import { quoteText } from '#lib/text/quote-text.ts';

/** Accounts for the tables of qcow2; a larger file cannot be this disk. */
const QCOW2_OVERHEAD = 1.05;
const QCOW2_SLACK = 64 * 1024 * 1024;

/** Returns what is wrong with the file, or undefined if it can be imported. */
export function checkOvaFile(
  { disks, state }: Pick<MachineDescription, 'disks' | 'state'>,
  file: { readonly name: string; readonly size: number },
): string | undefined {
  if (state?.file === file.name) {
    if (file.size <= MAX_STATE_ARCHIVE_BYTES) return undefined;
    return `the file ${quoteText(file.name)} has ${file.size} bytes, more than a persistent state may have`;
  }
  const disk = disks.find((known) => known.file === file.name);
  if (disk === undefined) return `the file ${quoteText(file.name)} belongs to no disk`;
  const { sizeBytes, format } = disk;
  if (sizeBytes === undefined) return undefined;
  const maxBytes = format === 'raw' ? sizeBytes : sizeBytes * QCOW2_OVERHEAD + QCOW2_SLACK;
  if (file.size <= maxBytes) return undefined;
  return `the file ${quoteText(file.name)} has ${file.size} bytes, but its disk ${quoteText(disk.name)} has ${sizeBytes}`;
}

/** Returns the files of disks that are not among `names`. */
export function findMissingFiles({ disks }: Pick<MachineDescription, 'disks'>, names: ReadonlySet<string>): string[] {
  return disks.flatMap(({ file }) => (file === undefined || names.has(file) ? [] : [file]));
}

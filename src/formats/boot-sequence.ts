/**
 * The boot sequence of old, one for the machine (`cdn`: disk, CD, network), and the boot order of each device. Both ways,
 * because old files and the old create have the one, and guests the other. Pure.
 */
import type { DiskMedia } from '#formats/machine.ts';

export type BootLetter = 'c' | 'd' | 'n';

/** By their number in OVFs. */
const SEQUENCES = [
  'c', 'dc', 'n', 'cdn', 'cnd', 'dcn', 'dnc', 'ncd', 'ndc', 'cd', 'd', 'cn', 'dn', 'nc', 'nd',
] as const; // prettier-ignore

export interface BootCandidate {
  readonly id: string;
  readonly kind: DiskMedia | 'nic';
  readonly plugged: boolean;
  /** Disks: marked as the one to boot from. */
  readonly boot?: boolean;
}

/** Undefined for a number that there is not. */
export function sequenceOfNumber(value: number): string | undefined {
  return SEQUENCES[value];
}

export function numberOfSequence(sequence: string): number {
  return Math.max(0, SEQUENCES.indexOf(sequence as (typeof SEQUENCES)[number]));
}

/** Undefined for what is no sequence: other letters, or one of them twice. */
export function parseSequence(text: string): BootLetter[] | undefined {
  const letters = [...text.toLowerCase()];
  const isSequence = letters.every((letter) => 'cdn'.includes(letter)) && new Set(letters).size === letters.length;
  return isSequence ? (letters as BootLetter[]) : undefined;
}

/**
 * From 1 on, for the devices that take part. Candidates stand in the order in which they are to be tried within their
 * kind. One disk boots whether marked or not; of several only the marked ones do, and the first where none is.
 */
export function ordersOf(sequence: readonly BootLetter[], candidates: readonly BootCandidate[]): Map<string, number> {
  const plugged = candidates.filter((candidate) => candidate.plugged);
  const disks = plugged.filter(({ kind }) => kind === 'disk' || kind === 'lun');
  const marked = disks.filter(({ boot }) => boot === true);
  const groups: Record<BootLetter, readonly BootCandidate[]> = {
    c: marked.length > 0 ? marked : disks.slice(0, 1),
    d: plugged.filter(({ kind }) => kind === 'cdrom'),
    n: plugged.filter(({ kind }) => kind === 'nic'),
  };
  return new Map(sequence.flatMap((letter) => groups[letter]).map(({ id }, i) => [id, i + 1]));
}

/** Reports whether a disk takes part in a boot order that nobody names. */
export function isBootable({ media, plugged }: { readonly media: DiskMedia; readonly plugged: boolean }): boolean {
  return plugged && media !== 'floppy';
}

/** Returns the boot order of a machine of ours that names none: its disks in their order, as node/definition gives it. */
export function impliedOrders(
  disks: readonly { readonly id: string; readonly media: DiskMedia; readonly plugged: boolean }[],
): Map<string, number> {
  return new Map(disks.filter(isBootable).map(({ id }, i) => [id, i + 1]));
}

/** The letters in the order in which devices of their kind are first tried; floppies have none. */
export function sequenceOf(
  devices: readonly { readonly kind: DiskMedia | 'nic'; readonly bootOrder?: number }[],
): string {
  const letters = devices
    .filter(({ bootOrder }) => bootOrder !== undefined && bootOrder > 0)
    .sort((a, b) => (a.bootOrder ?? 0) - (b.bootOrder ?? 0))
    .map(({ kind }) => ({ disk: 'c', lun: 'c', cdrom: 'd', floppy: '', nic: 'n' })[kind]);
  return [...new Set(letters)].join('') || 'c';
}

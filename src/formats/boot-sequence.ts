/**
 * Converts between oVirt's boot sequence of a machine (`cdn`: disk, CD, network), which old files have, and the boot
 * order of each device. Pure.
 */
import type { DiskMedia } from '#formats/machine.ts';

export type BootLetter = 'c' | 'd' | 'n';

/** The index is the number in OVFs. */
const SEQUENCES = [
  'c', 'dc', 'n', 'cdn', 'cnd', 'dcn', 'dnc', 'ncd', 'ndc', 'cd', 'd', 'cn', 'dn', 'nc', 'nd',
] as const; // prettier-ignore

export interface BootCandidate {
  readonly id: string;
  readonly kind: DiskMedia | 'nic';
  readonly plugged: boolean;
  /** True for a disk that is marked as boot disk. */
  readonly boot?: boolean;
}

/** Returns undefined for an unknown number. */
export function sequenceByNumber(value: number): string | undefined {
  return SEQUENCES[value];
}

export function sequenceNumber(sequence: string): number {
  return Math.max(0, SEQUENCES.indexOf(sequence as (typeof SEQUENCES)[number]));
}

/** Returns undefined if the text has unknown or repeated letters. */
export function parseSequence(text: string): BootLetter[] | undefined {
  const letters = [...text.toLowerCase()];
  const isSequence = letters.every((letter) => 'cdn'.includes(letter)) && new Set(letters).size === letters.length;
  return isSequence ? (letters as BootLetter[]) : undefined;
}

/**
 * Returns the boot orders of the devices to boot from, starting at 1. Candidates are in the order in which they are
 * tried within their kind. Of the disks, the marked ones boot; if none is marked, the first one.
 */
export function assignBootOrders(
  sequence: readonly BootLetter[],
  candidates: readonly BootCandidate[],
): Map<string, number> {
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

/** Reports whether a disk boots if the spec has no boot order. */
export function isBootable({ media, plugged }: { readonly media: DiskMedia; readonly plugged: boolean }): boolean {
  return plugged && media !== 'floppy';
}

/** Returns the boot orders of a VM whose spec has none: its disks in their order, as node/definition assigns them. */
export function impliedBootOrders(
  disks: readonly { readonly id: string; readonly media: DiskMedia; readonly plugged: boolean }[],
): Map<string, number> {
  return new Map(disks.filter(isBootable).map(({ id }, i) => [id, i + 1]));
}

/** Returns the letters in the order in which devices of their kind are first tried; floppies have none. */
export function deriveSequence(
  devices: readonly { readonly kind: DiskMedia | 'nic'; readonly bootOrder?: number }[],
): string {
  const letters = devices
    .filter(({ bootOrder }) => bootOrder !== undefined && bootOrder > 0)
    .sort((a, b) => (a.bootOrder ?? 0) - (b.bootOrder ?? 0))
    .map(({ kind }) => ({ disk: 'c', lun: 'c', cdrom: 'd', floppy: '', nic: 'n' })[kind]);
  return [...new Set(letters)].join('') || 'c';
}

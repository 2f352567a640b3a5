/** Compares what a guest saw before and after a step with the expected changes. Pure. */
import type { GuestReport } from '#cli/tour/guest-report.ts';
import { withoutColours, type Colour, type Painter } from '#lib/terminal/colour.ts';
import { displayWidth } from '#lib/terminal/display-width.ts';
import { alignedTable } from '#lib/terminal/table.ts';

/** Returns the identity of the machine as its guest sees it: the values that are compared, in display order. */
export function identityView({ facts, disks, nics }: GuestReport): Map<string, string> {
  return new Map([
    ['firmware uuid', facts['uuid'] ?? ''],
    ['serial', facts['serial'] ?? ''],
    ['machine type', facts['machine'] ?? ''],
    ...nics.map(({ name, mac, pci }): [string, string] => [`interface ${name}`, `${mac} at ${pci}`]),
    ...disks.map(({ serial, pci }): [string, string] => [`disk ${serial}`, `at ${pci}`]),
    ['TPM secret', secretOf(facts['tpm.nv'])],
    ['EFI variable', facts['efi.var'] ?? ''],
    ['boot id', facts['bootid'] ?? ''],
  ]);
}

/** The guest reports 16 bytes, padded with dots, or the error code of the TPM if there is no secret. */
function secretOf(reported = ''): string {
  return reported.startsWith('none(') ? 'none' : reported.replace(/\.+$/, '');
}

export interface ComparisonRow {
  readonly what: string;
  readonly before: string;
  readonly after: string;
  /** `requested`: the step changed the value as requested. */
  readonly result: 'same' | 'requested' | 'wrong';
}

/** The values that a step changes: the new value, or ANY_OTHER if it cannot be known in advance. */
export type RequestedChanges = Readonly<Record<string, string | typeof ANY_OTHER>>;
export const ANY_OTHER = Symbol('another');
export const ABSENT = '-';

export function compare(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
  requested: RequestedChanges,
): ComparisonRow[] {
  const names = new Set([...before.keys(), ...after.keys(), ...Object.keys(requested)]);
  return [...names].map((what) => {
    const [was, now] = [before.get(what) ?? ABSENT, after.get(what) ?? ABSENT];
    const wanted = Object.hasOwn(requested, what) ? requested[what] : was;
    const isRight = wanted === ANY_OTHER ? now !== was && now !== ABSENT : now === wanted;
    return { what, before: was, after: now, result: isRight ? (now === was ? 'same' : 'requested') : 'wrong' };
  });
}

const WORDS: Readonly<Record<ComparisonRow['result'], string>> = {
  same: 'same',
  requested: 'as requested',
  wrong: 'WRONG',
};
const COLOURS: Readonly<Record<ComparisonRow['result'], Colour>> = { same: 'dim', requested: 'yellow', wrong: 'red' };
const HEADER = ['', 'before', 'after', ''];
/** On a narrow screen, longer cells are shortened in the middle. */
const SHORT_LENGTH = 21;

interface ComparisonTableOptions {
  readonly columns?: number | undefined;
  readonly paint?: Painter;
}

export function comparisonTable(
  rows: readonly ComparisonRow[],
  { columns = Infinity, paint = withoutColours }: ComparisonTableOptions = {},
): string {
  const whole = rows.map(({ what, before, after, result }) => [what, before, after, WORDS[result]]);
  const tableOf = (lines: readonly (readonly string[])[]) =>
    alignedTable([HEADER, ...lines], {
      gap: 2,
      indent: '    ',
      paint: (cell, { row }) => (row === 0 ? cell : paint(COLOURS[rows[row - 1]!.result], cell)),
    });
  const table = tableOf(whole);
  const isTooWide = table.split('\n').some((line) => displayWidth(line) > columns);
  return `${isTooWide ? tableOf(whole.map((line) => line.map(shorten))) : table}\n`;
}

function shorten(text: string): string {
  return text.length <= SHORT_LENGTH ? text : `${text.slice(0, 8)}..${text.slice(8 + 2 - SHORT_LENGTH)}`;
}

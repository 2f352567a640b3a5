/** Compares what a guest saw before and after a step with the expected changes. Pure. */
import type { GuestReport } from '#cli/tour/guest-report.ts';

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
const COLOURS: Readonly<Record<ComparisonRow['result'], number>> = { same: 2, requested: 33, wrong: 31 };
/** On a narrow screen, longer cells are shortened in the middle. */
const SHORT_LENGTH = 21;

export interface ComparisonTableOptions {
  readonly columns?: number | undefined;
  readonly colours?: boolean;
}

export function comparisonTable(
  rows: readonly ComparisonRow[],
  { columns, colours = false }: ComparisonTableOptions = {},
): string {
  const whole = rows.map(({ what, before, after, result }) => [what, before, after, WORDS[result]]);
  const isTooWide = columns !== undefined && widthOf(whole) > columns;
  const cells = isTooWide ? whole.map((line) => line.map(shorten)) : whole;
  const widths = widthsOf(cells);
  const lineOf = (line: readonly string[]) =>
    `    ${line
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd()}`;
  const paint = (line: string, result: ComparisonRow['result']) =>
    colours ? `\u001B[${COLOURS[result]}m${line}\u001B[0m` : line;
  const body = cells.map((line, at) => paint(lineOf(line), rows[at]!.result));
  return [lineOf(HEADER), ...body, ''].join('\n');
}

const HEADER = ['', 'before', 'after', ''];

const widthsOf = (lines: readonly (readonly string[])[]) =>
  [0, 1, 2].map((column) => Math.max(...[HEADER, ...lines].map((line) => line[column]!.length)));

const widthOf = (lines: readonly (readonly string[])[]) =>
  widthsOf(lines).reduce((sum, width) => sum + width + 2, 4) + WORDS.requested.length;

function shorten(text: string): string {
  return text.length <= SHORT_LENGTH ? text : `${text.slice(0, 8)}..${text.slice(8 + 2 - SHORT_LENGTH)}`;
}

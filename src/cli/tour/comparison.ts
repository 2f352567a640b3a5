/** Compares what a guest saw before and after a step with the expected changes. Pure. */
import type { GuestReport } from '#cli/tour/guest-report.ts';

/** What makes a machine the selfsame one, as its guest sees it: what is compared, in the order in which it is shown. */
export function viewOf({ facts, disks, nics }: GuestReport): Map<string, string> {
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

/** The guest tells 16 bytes, filled up with dots, or the TPM's own code where there is nothing yet. */
function secretOf(told = ''): string {
  return told.startsWith('none(') ? 'none' : told.replace(/\.+$/, '');
}

export interface Row {
  readonly what: string;
  readonly before: string;
  readonly after: string;
  /** `decided`: the step was there to change it, and it became what was asked for. */
  readonly is: 'same' | 'decided' | 'WRONG';
}

/** What a step is to change: what it becomes, or `another` for what nobody can know before. */
export type Decided = Readonly<Record<string, string | typeof ANOTHER>>;
export const ANOTHER = Symbol('another');
export const GONE = '-';

export function compare(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
  decided: Decided,
): Row[] {
  const names = new Set([...before.keys(), ...after.keys(), ...Object.keys(decided)]);
  return [...names].map((what) => {
    const [was, now] = [before.get(what) ?? GONE, after.get(what) ?? GONE];
    const wanted = Object.hasOwn(decided, what) ? decided[what] : was;
    const isRight = wanted === ANOTHER ? now !== was && now !== GONE : now === wanted;
    return { what, before: was, after: now, is: isRight ? (now === was ? 'same' : 'decided') : 'WRONG' };
  });
}

const WORDS: Readonly<Record<Row['is'], string>> = { same: 'same', decided: 'as requested', WRONG: 'WRONG' };
const COLOURS: Readonly<Record<Row['is'], number>> = { same: 2, decided: 33, WRONG: 31 };
/** Longer ones are cut in the middle where the screen is narrow. */
const SHORT = 21;

export interface TableOptions {
  readonly columns?: number | undefined;
  readonly colours?: boolean;
}

export function tableText(rows: readonly Row[], { columns, colours = false }: TableOptions = {}): string {
  const whole = rows.map(({ what, before, after, is }) => [what, before, after, WORDS[is]]);
  const isTooWide = columns !== undefined && widthOf(whole) > columns;
  const cells = isTooWide ? whole.map((line) => line.map(shortened)) : whole;
  const widths = widthsOf(cells);
  const lineOf = (line: readonly string[]) =>
    `    ${line
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd()}`;
  const painted = (line: string, is: Row['is']) => (colours ? `\u001B[${COLOURS[is]}m${line}\u001B[0m` : line);
  const body = cells.map((line, at) => painted(lineOf(line), rows[at]!.is));
  return [lineOf(HEAD), ...body, ''].join('\n');
}

const HEAD = ['', 'before', 'after', ''];

const widthsOf = (lines: readonly (readonly string[])[]) =>
  [0, 1, 2].map((column) => Math.max(...[HEAD, ...lines].map((line) => line[column]!.length)));

const widthOf = (lines: readonly (readonly string[])[]) =>
  widthsOf(lines).reduce((sum, width) => sum + width + 2, 4) + WORDS.decided.length;

function shortened(text: string): string {
  return text.length <= SHORT ? text : `${text.slice(0, 8)}..${text.slice(8 + 2 - SHORT)}`;
}

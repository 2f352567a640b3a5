/** What a guest saw before and after a step, side by side, and whether it is what was decided. Pure. */
import type { GuestReport } from '#cli/tour/guest-report.ts';

/** What makes a machine the selfsame one, as its guest sees it: what is compared, in the order in which it is shown. */
export function viewOf({ facts, disks, nics }: GuestReport): Map<string, string> {
  return new Map([
    ['firmware uuid', facts['uuid'] ?? ''],
    ['serial', facts['serial'] ?? ''],
    ['machine type', facts['machine'] ?? ''],
    ...nics.map(({ name, mac, pci }): [string, string] => [`interface ${name}`, `${mac} at ${pci}`]),
    ...disks.map(({ serial, pci }): [string, string] => [`disk ${serial}`, `at ${pci}`]),
    ['TPM secret', (facts['tpm.nv'] ?? '').replace(/\.+$/, '')],
    ['EFI variable', facts['efi.var'] ?? ''],
    ['boot id', facts['bootid'] ?? ''],
  ]);
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

const WORDS: Readonly<Record<Row['is'], string>> = { same: 'same', decided: 'as decided', WRONG: 'WRONG' };

export function tableText(rows: readonly Row[]): string {
  const cells = [
    ['', 'before', 'after', ''],
    ...rows.map(({ what, before, after, is }) => [what, before, after, WORDS[is]]),
  ];
  const widths = [0, 1, 2].map((column) => Math.max(...cells.map((line) => line[column]!.length)));
  return cells
    .map(
      (line) =>
        `    ${line
          .map((cell, at) => cell.padEnd(widths[at] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

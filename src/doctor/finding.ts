/** Findings about the machine, and their text form. Pure. */
import { withoutColours, type Colour, type Painter } from '#lib/terminal/colour.ts';
import { alignedTable } from '#lib/terminal/table.ts';

export type FindingState =
  | 'works'
  /** Something is slower or unavailable; the rest works. */
  | 'limited'
  /** VMs cannot run without it. */
  | 'missing';

export interface Finding {
  readonly what: string;
  readonly state: FindingState;
  /** The state found, and its consequence. */
  readonly message: string;
  /** A command or an instruction that fixes the problem. */
  readonly fix?: string;
}

export interface Examination {
  readonly version: string;
  readonly findings: readonly Finding[];
}

const COLOURS: Readonly<Record<FindingState, Colour>> = { works: 'green', limited: 'yellow', missing: 'red' };

export function examinationText({ version, findings }: Examination, paint: Painter = withoutColours): string {
  return [`selfsame ${version}`, '', findingsText(findings, paint), '', summary(findings), ''].join('\n');
}

/** Renders a row for each finding, and one for its fix. */
export function findingsText(findings: readonly Finding[], paint: Painter = withoutColours): string {
  const rows = findings.flatMap(({ what, state, message, fix }) => [
    { state, cells: [state, what, message] },
    ...(fix === undefined ? [] : [{ state, cells: ['', '', `fix: ${fix}`] }]),
  ]);
  return alignedTable(
    rows.map(({ cells }) => cells),
    { gap: 2, paint: (cell, { row, column }) => (column === 0 ? paint(COLOURS[rows[row]!.state], cell) : cell) },
  );
}

function summary(findings: readonly Finding[]): string {
  const count = (state: FindingState) => findings.filter((finding) => finding.state === state).length;
  const [limited, missing] = [count('limited'), count('missing')];
  if (missing > 0) return `${count('works')} work, ${limited} limited, ${missing} missing: VMs cannot run here yet`;
  return `${count('works')} work${limited === 0 ? '' : `, ${limited} limited`}: VMs can run here`;
}

/** Reports whether VMs can run. */
export function isHealthy({ findings }: Examination): boolean {
  return findings.every(({ state }) => state !== 'missing');
}

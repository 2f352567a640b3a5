/** Findings about the machine, and their text form. Pure. */

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

const STATE_WIDTH = 9;
const WHAT_WIDTH = 18;
const FIX_INDENT = ' '.repeat(STATE_WIDTH + WHAT_WIDTH);

export function examinationText({ version, findings }: Examination): string {
  return [`selfsame ${version}`, '', ...findingLines(findings), '', summary(findings), ''].join('\n');
}

export function findingLines(findings: readonly Finding[]): string[] {
  return findings.flatMap(({ what, state, message, fix }) => [
    `${state.padEnd(STATE_WIDTH)}${what.padEnd(WHAT_WIDTH)}${message}`,
    ...(fix === undefined ? [] : [`${FIX_INDENT}fix: ${fix}`]),
  ]);
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

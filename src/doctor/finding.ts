/** What a look at the machine found: one line for people, with the command that mends it. Pure. */

export type FindingState =
  | 'works'
  /** Something is slower or not possible, the rest goes on. */
  | 'limited'
  /** Without it VMs do not run. */
  | 'missing';

export interface Finding {
  readonly what: string;
  readonly state: FindingState;
  /** What was found, or what does not work because of it. */
  readonly says: string;
  /** What a person can type or do about it. */
  readonly mend?: string;
}

export interface Examination {
  readonly version: string;
  readonly findings: readonly Finding[];
}

const STATE_WIDTH = 9;
const WHAT_WIDTH = 18;
const MEND_INDENT = ' '.repeat(STATE_WIDTH + WHAT_WIDTH);

export function examinationText({ version, findings }: Examination): string {
  return [`selfsame ${version}`, '', ...findingLines(findings), '', summary(findings), ''].join('\n');
}

export function findingLines(findings: readonly Finding[]): string[] {
  return findings.flatMap(({ what, state, says, mend }) => [
    `${state.padEnd(STATE_WIDTH)}${what.padEnd(WHAT_WIDTH)}${says}`,
    ...(mend === undefined ? [] : [`${MEND_INDENT}fix: ${mend}`]),
  ]);
}

function summary(findings: readonly Finding[]): string {
  const count = (state: FindingState) => findings.filter((finding) => finding.state === state).length;
  const [limited, missing] = [count('limited'), count('missing')];
  if (missing > 0) return `${count('works')} work, ${limited} limited, ${missing} missing: VMs cannot run here yet`;
  return `${count('works')} work${limited === 0 ? '' : `, ${limited} limited`}: VMs can run here`;
}

/** Whether VMs can run. */
export function isHealthy({ findings }: Examination): boolean {
  return findings.every(({ state }) => state !== 'missing');
}

/** `--dry-run`, which all verbs have, and so have protect and unprotect. */
import { switchFlag } from '#cli/flags.ts';

export const dryRunFlag = switchFlag({
  name: 'dry-run',
  help: '--dry-run=false: Flag used to set whether to perform a dry run or not. If true the command will be executed without performing any changes.',
});

/** The field of the verb's options; tells the user. */
export function dryRunOption(dryRun: boolean, print: (line: string) => void): { dryRun?: ['All'] } {
  if (!dryRun) return {};
  print('Dry Run execution');
  return { dryRun: ['All'] };
}

/** The same as the query of a write; tells the user. */
export function dryRunQuery(dryRun: boolean, print: (line: string) => void): string {
  const { dryRun: stages = [] } = dryRunOption(dryRun, print);
  return stages.map((stage) => `?dryRun=${stage}`).join('');
}

/** The flag `--dry-run` of all verbs, protect and unprotect. */
import { switchFlag } from '#lib/command-line/flag.ts';

export const dryRunFlag = switchFlag({
  name: 'dry-run',
  help: '--dry-run=false: Flag used to set whether to perform a dry run or not. If true the command will be executed without performing any changes.',
});

/** Returns the option of the verb and prints a note. */
export function dryRunOption(dryRun: boolean, print: (line: string) => void): { dryRun?: ['All'] } {
  if (!dryRun) return {};
  print('Dry Run execution');
  return { dryRun: ['All'] };
}

/** Returns the query parameter of a write and prints a note. */
export function dryRunQuery(dryRun: boolean, print: (line: string) => void): string {
  const { dryRun: stages = [] } = dryRunOption(dryRun, print);
  return stages.map((stage) => `?dryRun=${stage}`).join('');
}

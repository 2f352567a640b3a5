/** virtctl update machine-types list */
import { defineCommand } from '#cli/parsing/command.ts';
import {
  trackEntries,
  readTransitionJob,
  listTransitionJobs,
  readTransition,
  type Transition,
} from '#cli/machine-types/read-transitions.ts';
import { transitionsAsValue, transitionsText } from '#cli/machine-types/transition-table.ts';
import { formatValue, outputFlag, parseOutputFormat } from '#cli/terminal/output-format.ts';

export const updateMachineTypesList = defineCommand({
  name: 'list',
  usage: '[JOB]',
  summary: 'List the jobs that update machine types, and the state of every virtual machine in them.',
  details: [
    'States: pending (not changed yet), updated (the spec is changed, the guest still runs with the old type), restart',
    'required (and marked in the status of the virtual machine), restarting, done, skipped, failed. REASON explains the',
    'state.',
  ].join('\n'),
  example: [
    '  # List all jobs:',
    '  virtctl update machine-types list',
    '',
    '  # Print one job as JSON:',
    '  virtctl update machine-types list convert-machine-type-x7k2p -o json',
  ].join('\n'),
  flags: { output: outputFlag },
  args: [0, 1],
  async run({ args: [name], flags, connect, print, terminal, clock }) {
    const format = parseOutputFormat(flags.output);
    const api = await connect();
    const report = (line: string) => void terminal.stderr.write(`${line}\n`);
    const transitions: Transition[] = [];
    for (const job of name === undefined
      ? await listTransitionJobs(api, report)
      : [await readTransitionJob(api, name)]) {
      transitions.push(await readTransition(api, job, report));
    }
    const entries = await trackEntries(api, transitions, report);
    const listed = transitions.map((transition, i) => ({ transition, entries: entries[i] ?? [] }));
    print(
      format === undefined ? transitionsText(listed, clock.now()) : formatValue(transitionsAsValue(listed), format),
    );
  },
});

/** virtctl update machine-types delete */
import { defineCommand } from '#cli/parsing/command.ts';
import { deletionText } from '#cli/machine-types/deletion-text.ts';
import { removeTransition, resetMarks, stopJob } from '#cli/machine-types/delete-transition.ts';
import { trackEntries, readTransitionJob, readTransition } from '#cli/machine-types/read-transitions.ts';

export const updateMachineTypesDelete = defineCommand({
  name: 'delete',
  usage: '(JOB)',
  summary: 'Stop a job that updates machine types, report what it has done, and delete it.',
  details: [
    'Completed changes stay: a virtual machine whose type was changed gets the new type at its next start. The status',
    'machineTypeRestartRequired is cleared on virtual machines that were not restarted, since no job tracks it any more.',
  ].join('\n'),
  example:
    '  # Stop and delete a job, even if it is running:\n  virtctl update machine-types delete convert-machine-type-x7k2p',
  flags: {},
  args: 1,
  async run({ args: [name = ''], connect, print, terminal, clock }) {
    const api = await connect();
    const report = (line: string) => void terminal.stderr.write(`${line}\n`);
    const options = { clock, report };
    const job = await readTransitionJob(api, name);
    await stopJob(api, job, options);
    const transition = await readTransition(api, job, report);
    const [entries = []] = await trackEntries(api, [transition], report);
    const reset = await resetMarks(api, transition, entries, options);
    print(deletionText(transition, entries, reset));
    const isGone = await removeTransition(api, transition, options);
    print(`Job ${name} ${isGone ? 'was deleted' : 'is being deleted'}.`);
  },
});

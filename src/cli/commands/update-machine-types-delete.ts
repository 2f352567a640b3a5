/** virtctl update machine-types delete */
import { defineCommand } from '#cli/command.ts';
import { deletionText } from '#cli/machine-types/deletion-text.ts';
import { removeTransition, resetMarks, stopJob } from '#cli/machine-types/delete-transition.ts';
import { followAll, readJob, readTransition } from '#cli/machine-types/read-transitions.ts';

export const updateMachineTypesDelete = defineCommand({
  name: 'delete',
  usage: '(JOB)',
  summary: 'Stop a job that updates machine types, tell what it has done, and remove it.',
  details: [
    'What is done stays done: a virtual machine whose type was changed takes the new one at its next start. The mark',
    'machineTypeRestartRequired is taken off those that were not restarted, since nobody looks after it any more.',
  ].join('\n'),
  example: '  # Stop a job, whatever it is doing:\n  virtctl update machine-types delete convert-machine-type-x7k2p',
  flags: {},
  args: 1,
  async run({ args: [name = ''], connect, print, terminal, clock }) {
    const api = await connect();
    const say = (line: string) => void terminal.stderr.write(`${line}\n`);
    const options = { clock, say };
    const job = await readJob(api, name);
    await stopJob(api, job, options);
    const transition = await readTransition(api, job, say);
    const [followed = []] = await followAll(api, [transition], say);
    const reset = await resetMarks(api, transition, followed, options);
    print(deletionText(transition, followed, reset));
    const isGone = await removeTransition(api, transition, options);
    print(`Job ${name} ${isGone ? 'was deleted' : 'is being deleted'}.`);
  },
});

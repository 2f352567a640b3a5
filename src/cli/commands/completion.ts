/** virtctl completion */
import { defineCommand } from '#cli/command.ts';
import { completionExample, completionScript, SHELLS } from '#cli/completion/completion-script.ts';
import { CommandError } from '#cli/flags.ts';

export const completion = defineCommand({
  name: 'completion',
  usage: SHELLS.join('|'),
  summary: 'Print a script by which a shell completes the words of virtctl.',
  details:
    'Commands, flags and their values are completed, and names of objects by asking the server.\n' +
    'For "kubectl virt", kubectl itself asks the program kubectl_complete-virt, where its own completion is loaded.',
  example: completionExample('virtctl'),
  flags: {},
  args: 1,
  completes: [SHELLS],
  async run({ args: [word], terminal }) {
    const shell = SHELLS.find((one) => one === word);
    if (shell === undefined) {
      throw new CommandError(`unsupported shell type ${JSON.stringify(word)}; expected ${SHELLS.join(', ')}`);
    }
    terminal.stdout.write(completionScript(shell, 'virtctl'));
  },
});

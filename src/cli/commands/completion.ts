/** virtctl completion */
import { defineCommand } from '#cli/parsing/command.ts';
import { completionExample, completionScript, SHELLS } from '#cli/completion/completion-script.ts';
import { CommandError } from '#cli/parsing/flags.ts';

export const completion = defineCommand({
  name: 'completion',
  usage: SHELLS.join('|'),
  summary: 'Print a shell completion script for virtctl.',
  details:
    'Completes commands, flags, flag values, and object names, which it reads from the server.\n' +
    'For "kubectl virt", load the completion of kubectl, which calls the program kubectl_complete-virt.',
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

/** virtctl restart */
import { defineCommand } from '#cli/parsing/command.ts';
import { dryRunFlag, dryRunOption } from '#cli/parsing/dry-run.ts';
import { CommandError } from '#cli/parsing/flags.ts';
import { forcedGrace, forceFlags } from '#cli/parsing/force-flags.ts';
import { errorMessage } from '#lib/error-message.ts';
import { verbPath } from '#cli/connection/verb-path.ts';

export const restart = defineCommand({
  name: 'restart',
  usage: '(VM)',
  summary: 'Restart a virtual machine.',
  example: "  # Restart a virtual machine called 'myvm':\n  virtctl restart myvm",
  flags: { ...forceFlags, dryRun: dryRunFlag },
  args: 1,
  async run({ args: [name = ''], flags, connect, print }) {
    const gracePeriodSeconds = forcedGrace(flags);
    const api = await connect();
    const grace = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds };
    const body = { ...grace, ...dryRunOption(flags.dryRun, print) };
    try {
      await api.put(verbPath('virtualmachines', api.namespace, name, 'restart'), body);
    } catch (cause) {
      const what = gracePeriodSeconds === undefined ? 'restarting' : 'force restarting';
      throw new CommandError(`error ${what} VirtualMachine: ${errorMessage(cause)}`, { cause });
    }
    print(`VM ${name} was scheduled to restart`);
  },
});

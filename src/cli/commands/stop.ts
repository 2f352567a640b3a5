/** virtctl stop */
import { defineCommand } from '#cli/parsing/command.ts';
import { dryRunFlag, dryRunOption } from '#cli/parsing/dry-run.ts';
import { CommandError } from '#cli/parsing/flags.ts';
import { forcedGrace, forceFlags } from '#cli/parsing/force-flags.ts';
import { errorMessage } from '#lib/error-message.ts';
import { verbPath } from '#cli/connection/verb-path.ts';

export const stop = defineCommand({
  name: 'stop',
  usage: '(VM)',
  summary: 'Stop a virtual machine.',
  example: "  # Stop a virtual machine called 'myvm':\n  virtctl stop myvm",
  flags: { ...forceFlags, dryRun: dryRunFlag },
  args: 1,
  async run({ args: [name = ''], flags, connect, print }) {
    const gracePeriod = forcedGrace(flags);
    const api = await connect();
    const body = { ...(gracePeriod === undefined ? {} : { gracePeriod }), ...dryRunOption(flags.dryRun, print) };
    try {
      await api.put(verbPath('virtualmachines', api.namespace, name, 'stop'), body);
    } catch (cause) {
      const what = gracePeriod === undefined ? 'error stopping VirtualMachine' : 'error force stopping VirtualMachine:';
      throw new CommandError(`${what} ${errorMessage(cause)}`, { cause });
    }
    print(`VM ${name} was scheduled to stop`);
  },
});

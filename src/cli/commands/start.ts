/** virtctl start */
import { defineCommand } from '#cli/parsing/command.ts';
import { dryRunFlag, dryRunOption } from '#cli/parsing/dry-run.ts';
import { CommandError, switchFlag } from '#cli/parsing/flags.ts';
import { errorMessage } from '#lib/error-message.ts';
import { verbPath } from '#cli/connection/verb-path.ts';

export const start = defineCommand({
  name: 'start',
  usage: '(VM)',
  summary: 'Start a virtual machine.',
  example: "  # Start a virtual machine called 'myvm':\n  virtctl start myvm",
  flags: {
    paused: switchFlag({
      name: 'paused',
      help: '--paused=false: If set to true, start virtual machine in paused state',
    }),
    dryRun: dryRunFlag,
  },
  args: 1,
  async run({ args: [name = ''], flags, connect, print }) {
    const api = await connect();
    const body = { ...(flags.paused ? { paused: true } : {}), ...dryRunOption(flags.dryRun, print) };
    try {
      await api.put(verbPath('virtualmachines', api.namespace, name, 'start'), body);
    } catch (cause) {
      throw new CommandError(`Error starting VirtualMachine ${errorMessage(cause)}`, { cause });
    }
    print(`VM ${name} was scheduled to start`);
  },
});

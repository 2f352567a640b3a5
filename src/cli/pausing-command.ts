/** What pause and unpause are: the same command with another word. */
import { defineCommand, type Command } from '#cli/command.ts';
import { dryRunFlag, dryRunOption } from '#cli/dry-run.ts';
import { askInstance, askInstanceOfVm, namedKind, type InstanceVerb } from '#cli/instance-verb.ts';

export function pausingCommand(verb: InstanceVerb & { readonly said: 'pause' | 'unpause' }, title: string): Command {
  const name = verb.said;
  return defineCommand({
    name,
    usage: 'vm|vmi (VM)|(VMI)',
    summary: `${title} a virtual machine.`,
    example: `  # ${title} a virtual machine called 'myvm':\n  virtctl ${name} vm myvm`,
    flags: { dryRun: dryRunFlag },
    args: 2,
    completes: [['vm', 'vmi'], 'vm'],
    async run({ args: [kind = '', target = ''], flags, connect, print }) {
      const ask = namedKind(kind) === 'vm' ? askInstanceOfVm : askInstance;
      const api = await connect();
      print(await ask(api, verb, target, dryRunOption(flags.dryRun, print)));
    },
  });
}

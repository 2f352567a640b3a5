/** Defines pause and unpause, which differ only in the verb. */
import { defineCommand, type Command } from '#cli/parsing/command.ts';
import { dryRunFlag, dryRunOption } from '#cli/parsing/dry-run.ts';
import {
  sendInstanceVerb,
  sendInstanceVerbOfVm,
  parseKindWord,
  type InstanceCommandVerb,
} from '#cli/verbs/instance-verb.ts';

export function definePauseCommand(
  verb: InstanceCommandVerb & { readonly word: 'pause' | 'unpause' },
  title: string,
): Command {
  const name = verb.word;
  return defineCommand({
    name,
    usage: 'vm|vmi (VM)|(VMI)',
    summary: `${title} a virtual machine.`,
    example: `  # ${title} a virtual machine called 'myvm':\n  virtctl ${name} vm myvm`,
    flags: { dryRun: dryRunFlag },
    args: 2,
    completes: [['vm', 'vmi'], 'vm'],
    async run({ args: [kind = '', target = ''], flags, connect, print }) {
      const ask = parseKindWord(kind) === 'vm' ? sendInstanceVerbOfVm : sendInstanceVerb;
      const api = await connect();
      print(await ask(api, verb, target, dryRunOption(flags.dryRun, print)));
    },
  });
}

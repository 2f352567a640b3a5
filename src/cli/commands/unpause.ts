/** virtctl unpause */
import { defineCommand } from '#cli/command.ts';
import { dryRunFlag, dryRunOption } from '#cli/dry-run.ts';
import { askInstance, askInstanceOfVm, namedKind, type InstanceVerb } from '#cli/instance-verb.ts';

const VERB: InstanceVerb = { verb: 'unpause', said: 'unpause', doing: 'unpausing' };

export const unpause = defineCommand({
  name: 'unpause',
  usage: 'vm|vmi (VM)|(VMI)',
  summary: 'Unpause a virtual machine',
  example: "  # Unpause a virtualmachine called 'myvm':\n  virtctl unpause vm myvm",
  flags: { dryRun: dryRunFlag },
  args: 2,
  async run({ args: [kind = '', name = ''], flags, connect, print }) {
    const ask = namedKind(kind) === 'vm' ? askInstanceOfVm : askInstance;
    const api = await connect();
    print(await ask(api, VERB, name, dryRunOption(flags.dryRun, print)));
  },
});

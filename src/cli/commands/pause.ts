/** virtctl pause */
import { defineCommand } from '#cli/command.ts';
import { dryRunFlag, dryRunOption } from '#cli/dry-run.ts';
import { askInstance, askInstanceOfVm, namedKind, type InstanceVerb } from '#cli/instance-verb.ts';

const VERB: InstanceVerb = { verb: 'pause', said: 'pause', doing: 'pausing' };

export const pause = defineCommand({
  name: 'pause',
  usage: 'vm|vmi (VM)|(VMI)',
  summary: 'Pause a virtual machine',
  example: "  # Pause a virtualmachine called 'myvm':\n  virtctl pause vm myvm",
  flags: { dryRun: dryRunFlag },
  args: 2,
  async run({ args: [kind = '', name = ''], flags, connect, print }) {
    const ask = namedKind(kind) === 'vm' ? askInstanceOfVm : askInstance;
    const api = await connect();
    print(await ask(api, VERB, name, dryRunOption(flags.dryRun, print)));
  },
});

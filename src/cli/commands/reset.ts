/** virtctl reset */
import { defineCommand } from '#cli/command.ts';
import { askInstance, type InstanceVerb } from '#cli/instance-verb.ts';

const VERB: InstanceVerb = { verb: 'reset', said: 'reset', doing: 'resetting' };

export const reset = defineCommand({
  name: 'reset',
  usage: '(VMI)',
  summary: 'Reset a virtual machine instance.',
  example: "  # Reset a virtualmachineinstance called 'myvmi':\n  virtctl reset myvmi",
  flags: {},
  args: 1,
  async run({ args: [name = ''], connect, print }) {
    print(await askInstance(await connect(), VERB, name, {}));
  },
});

/** virtctl reset */
import { defineCommand } from '#cli/parsing/command.ts';
import { sendInstanceVerb, type InstanceCommandVerb } from '#cli/verbs/instance-verb.ts';

const VERB: InstanceCommandVerb = { verb: 'reset', word: 'reset', gerund: 'resetting' };

export const reset = defineCommand({
  name: 'reset',
  usage: '(VMI)',
  summary: 'Reset a virtual machine instance.',
  example: "  # Reset a virtualmachineinstance called 'myvmi':\n  virtctl reset myvmi",
  flags: {},
  args: 1,
  async run({ args: [name = ''], connect, print }) {
    print(await sendInstanceVerb(await connect(), VERB, name, {}));
  },
});

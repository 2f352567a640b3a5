/** virtctl soft-reboot */
import { defineCommand } from '#cli/parsing/command.ts';
import { sendInstanceVerb, type InstanceCommandVerb } from '#cli/verbs/instance-verb.ts';

const VERB: InstanceCommandVerb = { verb: 'softreboot', word: 'soft-reboot', gerund: 'soft rebooting' };

export const softReboot = defineCommand({
  name: 'soft-reboot',
  usage: '(VMI)',
  summary: 'Soft reboot a virtual machine instance.',
  example: "  # Soft reboot a virtualmachineinstance called 'myvmi':\n  virtctl soft-reboot myvmi",
  flags: {},
  args: 1,
  async run({ args: [name = ''], connect, print }) {
    print(await sendInstanceVerb(await connect(), VERB, name, {}));
  },
});

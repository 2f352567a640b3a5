/** virtctl soft-reboot */
import { defineCommand } from '#cli/command.ts';
import { askInstance, type InstanceVerb } from '#cli/instance-verb.ts';

const VERB: InstanceVerb = { verb: 'softreboot', said: 'soft-reboot', doing: 'soft rebooting' };

export const softReboot = defineCommand({
  name: 'soft-reboot',
  usage: '(VMI)',
  summary: 'Soft reboot a virtual machine instance.',
  example: "  # Soft reboot a virtualmachineinstance called 'myvmi':\n  virtctl soft-reboot myvmi",
  flags: {},
  args: 1,
  async run({ args: [name = ''], connect, print }) {
    print(await askInstance(await connect(), VERB, name, {}));
  },
});

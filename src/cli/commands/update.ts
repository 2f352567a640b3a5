/** virtctl update ...: changes to many virtual machines. */
import type { CommandGroup } from '#cli/parsing/command.ts';
import { updateMachineTypes } from '#cli/commands/update-machine-types.ts';

export const update: CommandGroup = {
  name: 'update',
  summary: 'Change many virtual machines at once.',
  commands: [updateMachineTypes],
};

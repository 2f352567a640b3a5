/** virtctl create */
import type { CommandGroup } from '#cli/parsing/command.ts';
import { createVm } from '#cli/commands/create-vm.ts';

export const create: CommandGroup = {
  name: 'create',
  summary: 'Create a manifest for the specified kind.',
  commands: [createVm],
};

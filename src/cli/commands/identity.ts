/** virtctl identity ...: what makes machines the selfsame. */
import type { CommandGroup } from '#cli/command.ts';
import { identityDuplicates } from '#cli/commands/identity-duplicates.ts';

export const identity: CommandGroup = {
  name: 'identity',
  summary: 'Look at the identities of virtual machines.',
  commands: [identityDuplicates],
};

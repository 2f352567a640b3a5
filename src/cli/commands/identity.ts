/** virtctl identity ...: the identity of virtual machines. */
import type { CommandGroup } from '#cli/parsing/command.ts';
import { identityDiffCommand } from '#cli/commands/identity-diff.ts';
import { identityDuplicates } from '#cli/commands/identity-duplicates.ts';
import { identityHistory } from '#cli/commands/identity-history.ts';
import { identityRenew } from '#cli/commands/identity-renew.ts';
import { identityShow } from '#cli/commands/identity-show.ts';

export const identity: CommandGroup = {
  name: 'identity',
  summary: 'Inspect the identity of virtual machines.',
  commands: [identityDiffCommand, identityDuplicates, identityHistory, identityRenew, identityShow],
};

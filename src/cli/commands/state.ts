/** virtctl state ...: the claim with the TPM and the EFI variables of a virtual machine. */
import type { CommandGroup } from '#cli/parsing/command.ts';
import { stateAdopt } from '#cli/commands/state-adopt.ts';
import { stateRelease } from '#cli/commands/state-release.ts';

export const state: CommandGroup = {
  name: 'state',
  summary: 'Adopt or release claims that are marked as the persistent state of virtual machines.',
  commands: [stateAdopt, stateRelease],
};

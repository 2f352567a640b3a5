/** virtctl unprotect */
import { changeProtection, targetFlags } from '#cli/verbs/change-protection.ts';
import { defineCommand } from '#cli/parsing/command.ts';
import { UNPROTECT_CHANGE } from '#cli/verbs/protection.ts';

export const unprotect = defineCommand({
  name: 'unprotect',
  usage: '(VM) | --selector SELECTOR',
  summary: 'Remove the deletion protection of virtual machines.',
  details: 'Removes the label kubevirt.io/vm-delete-protection. Nothing is deleted.',
  example: [
    "  # Allow the deletion of a virtual machine called 'myvm' again:",
    '  virtctl unprotect myvm',
    '',
    "  # Unprotect all databases in the namespace 'team-a':",
    '  virtctl unprotect --selector tier=db -n team-a',
  ].join('\n'),
  flags: targetFlags,
  args: [0, 1],
  run: async (context) => changeProtection(context, UNPROTECT_CHANGE),
});

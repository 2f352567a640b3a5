/** virtctl unprotect */
import { changeProtection, targetFlags } from '#cli/change-protection.ts';
import { defineCommand } from '#cli/command.ts';
import { UNPROTECTING } from '#cli/protection.ts';

export const unprotect = defineCommand({
  name: 'unprotect',
  usage: '(VM) | --selector SELECTOR',
  summary: 'No longer protect virtual machines from deletion.',
  details: 'Removes the label kubevirt.io/vm-delete-protection. Nothing is deleted.',
  example: [
    "  # Let a virtual machine called 'myvm' be deleted again:",
    '  virtctl unprotect myvm',
    '',
    "  # All databases of the namespace 'team-a':",
    '  virtctl unprotect --selector tier=db -n team-a',
  ].join('\n'),
  flags: targetFlags,
  args: [0, 1],
  run: async (context) => changeProtection(context, UNPROTECTING),
});

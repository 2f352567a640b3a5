/** virtctl protect */
import { changeProtection, targetFlags } from '#cli/change-protection.ts';
import { defineCommand } from '#cli/command.ts';
import { textFlag } from '#cli/flags.ts';
import { protecting } from '#cli/protection.ts';

export const protect = defineCommand({
  name: 'protect',
  usage: '(VM) | --selector SELECTOR',
  summary: 'Protect virtual machines from deletion.',
  details:
    'Sets the label kubevirt.io/vm-delete-protection. Whoever deletes the virtual machine is refused until it is\n' +
    'unprotected; stop, restart and snapshots stay possible.',
  example: [
    "  # Protect a virtual machine called 'myvm', and say why:",
    "  virtctl protect myvm --reason 'holds the ledger'",
    '',
    '  # Protect all databases of all namespaces:',
    '  virtctl protect --selector tier=db --all-namespaces',
  ].join('\n'),
  flags: {
    reason: textFlag(
      {
        name: 'reason',
        help: 'Why, for those who want to delete it; an earlier one stays where none is given, an empty one removes it.',
      },
      'string',
    ),
    ...targetFlags,
  },
  args: [0, 1],
  run: async (context) => changeProtection(context, protecting(context.flags.reason)),
});

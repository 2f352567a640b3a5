/** virtctl protect and unprotect */
import { changeProtection, targetFlags } from '#cli/commands/protection/change-protection.ts';
import { releaseDisk } from '#cli/commands/protection/release-disk.ts';
import { defineCommand } from '#cli/command.ts';
import { textFlag } from '#lib/command-line/flag.ts';
import { buildProtectChange, UNPROTECT_CHANGE } from '#cli/commands/protection/protection.ts';

export const protect = defineCommand({
  name: 'protect',
  usage: '(VM) | --selector SELECTOR',
  summary: 'Protect virtual machines from deletion.',
  details:
    'Sets the label kubevirt.io/vm-delete-protection. Requests to delete the virtual machine are refused until it is\n' +
    'unprotected. Stop, restart and snapshots still work.',
  example: [
    "  # Protect a virtual machine called 'myvm' and record the reason:",
    "  virtctl protect myvm --reason 'holds the ledger'",
    '',
    '  # Protect all databases in all namespaces:',
    '  virtctl protect --selector tier=db --all-namespaces',
  ].join('\n'),
  flags: {
    reason: textFlag(
      {
        name: 'reason',
        help: 'The reason shown when a deletion is refused; without this flag an existing reason is kept, an empty value removes it.',
      },
      'string',
    ),
    ...targetFlags,
  },
  args: [0, 1],
  run: async (context) => changeProtection(context, buildProtectChange(context.flags.reason)),
});

export const unprotect = defineCommand({
  name: 'unprotect',
  usage: '(VM) | --selector SELECTOR',
  summary: 'Remove the deletion protection of virtual machines.',
  details:
    'Removes the label kubevirt.io/vm-delete-protection. Nothing is deleted. With --disk, the virtual machine stays\n' +
    'protected, and only a claim that was detached from it can be deleted again.',
  example: [
    "  # Allow the deletion of a virtual machine called 'myvm' again:",
    '  virtctl unprotect myvm',
    '',
    "  # Unprotect all databases in the namespace 'team-a':",
    '  virtctl unprotect --selector tier=db -n team-a',
    '',
    "  # Allow the deletion of the claim 'old-data', which was detached from the virtual machine 'myvm':",
    '  virtctl unprotect myvm --disk old-data',
  ].join('\n'),
  flags: {
    ...targetFlags,
    disk: textFlag(
      {
        name: 'disk',
        help: 'Release only this PersistentVolumeClaim, which was detached from the VM.',
        completes: 'pvc',
      },
      'string',
    ),
  },
  args: [0, 1],
  async run(context) {
    const { disk } = context.flags;
    if (disk === undefined) await changeProtection(context, UNPROTECT_CHANGE);
    else await releaseDisk(context, disk);
  },
});

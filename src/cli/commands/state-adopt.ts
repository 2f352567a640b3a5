/** virtctl state adopt */
import { defineCommand } from '#cli/command.ts';
import { dryRunOption } from '#cli/dry-run.ts';
import { askForState, requiredClaim, stateFlags } from '#cli/state-verb.ts';

export const stateAdopt = defineCommand({
  name: 'adopt',
  usage: 'VM',
  summary: 'Hand a claim that belongs to somebody else over to a virtual machine as its persistent state.',
  details:
    'For a claim that is marked as the state of the virtual machine and that another object owns, which keeps the\n' +
    'virtual machine from starting. The claim then belongs to the virtual machine alone and is deleted with it. Refused\n' +
    'while another virtual machine, an instance or a pod uses the claim. Takes the right to update the virtual machine.',
  example: [
    "  # The virtual machine 'myvm' finds its TPM and its EFI variables in this claim from now on:",
    '  virtctl state adopt myvm --claim persistent-state-for-myvm-x4b2z',
  ].join('\n'),
  flags: stateFlags,
  args: 1,
  async run({ args: [vm = ''], flags, connect, print }) {
    const claim = requiredClaim(flags.claim);
    const api = await connect();
    const options = dryRunOption(flags.dryRun, print);
    await askForState(api, { verb: 'adoptstate', doing: 'adopting', vm, claim, uid: flags.uid, options });
    print(`PersistentVolumeClaim ${claim} belongs to VM ${vm} as its persistent state`);
  },
});

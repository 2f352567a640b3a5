/** virtctl state adopt */
import { defineCommand } from '#cli/parsing/command.ts';
import { dryRunOption } from '#cli/parsing/dry-run.ts';
import { sendStateVerb, requireClaim, stateFlags } from '#cli/verbs/state-verb.ts';

export const stateAdopt = defineCommand({
  name: 'adopt',
  usage: 'VM',
  summary: 'Make a virtual machine the owner of a claim that is marked as its persistent state.',
  details:
    'A virtual machine does not start while the claim marked as its state is owned by another object. This command makes\n' +
    'the virtual machine the only owner, so that the claim is deleted with it. Refused while another virtual machine, an\n' +
    'instance or a pod uses the claim. Requires permission to update the virtual machine.',
  example: [
    "  # Use this claim for the TPM and the EFI variables of the virtual machine 'myvm':",
    '  virtctl state adopt myvm --claim persistent-state-for-myvm-x4b2z',
  ].join('\n'),
  flags: stateFlags,
  args: 1,
  async run({ args: [vm = ''], flags, connect, print }) {
    const claim = requireClaim(flags.claim);
    const api = await connect();
    const options = dryRunOption(flags.dryRun, print);
    await sendStateVerb(api, { verb: 'adoptstate', gerund: 'adopting', vm, claim, uid: flags.uid, options });
    print(`PersistentVolumeClaim ${claim} is now the persistent state of VM ${vm}`);
  },
});

/** virtctl state release */
import { defineCommand } from '#cli/command.ts';
import { dryRunOption } from '#cli/dry-run.ts';
import { askForState, requiredClaim, stateFlags } from '#cli/state-verb.ts';

export const stateRelease = defineCommand({
  name: 'release',
  usage: 'VM',
  summary: 'Remove the mark by which a claim of somebody else counts as the persistent state of a virtual machine.',
  details:
    'For a claim that is marked as the state of the virtual machine and that another object owns, which keeps the\n' +
    'virtual machine from starting. The claim and its content stay with their owner; where there is no other state, the\n' +
    'virtual machine starts with an empty one. Takes the right to update the virtual machine.',
  example: [
    "  # The virtual machine 'myvm' has nothing to do with this claim:",
    '  virtctl state release myvm --claim persistent-state-for-myvm-x4b2z',
  ].join('\n'),
  flags: stateFlags,
  args: 1,
  async run({ args: [vm = ''], flags, connect, print }) {
    const claim = requiredClaim(flags.claim);
    const api = await connect();
    const options = dryRunOption(flags.dryRun, print);
    await askForState(api, { verb: 'releasestate', doing: 'releasing', vm, claim, uid: flags.uid, options });
    print(`PersistentVolumeClaim ${claim} is no longer marked as the persistent state of VM ${vm}`);
  },
});

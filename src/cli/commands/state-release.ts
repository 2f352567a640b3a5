/** virtctl state release */
import { defineCommand } from '#cli/parsing/command.ts';
import { dryRunOption } from '#cli/parsing/dry-run.ts';
import { sendStateVerb, requireClaim, stateFlags } from '#cli/verbs/state-verb.ts';

export const stateRelease = defineCommand({
  name: 'release',
  usage: 'VM',
  summary: 'Remove the mark that makes a claim the persistent state of a virtual machine.',
  details:
    'A virtual machine does not start while the claim marked as its state is owned by another object. This command removes\n' +
    'the mark; the claim and its content stay with their owner. If the virtual machine has no other state, it starts with\n' +
    'an empty one. Requires permission to update the virtual machine.',
  example: [
    "  # Stop treating this claim as the state of the virtual machine 'myvm':",
    '  virtctl state release myvm --claim persistent-state-for-myvm-x4b2z',
  ].join('\n'),
  flags: stateFlags,
  args: 1,
  async run({ args: [vm = ''], flags, connect, print }) {
    const claim = requireClaim(flags.claim);
    const api = await connect();
    const options = dryRunOption(flags.dryRun, print);
    await sendStateVerb(api, { verb: 'releasestate', gerund: 'releasing', vm, claim, uid: flags.uid, options });
    print(`PersistentVolumeClaim ${claim} is no longer marked as the persistent state of VM ${vm}`);
  },
});

/** virtctl removevolume */
import { defineCommand } from '#cli/parsing/command.ts';
import { dryRunOption } from '#cli/parsing/dry-run.ts';
import {
  sendVolumeVerb,
  persistFlags,
  requireVolumeName,
  volumeNameFlag,
  type VolumeVerb,
} from '#cli/verbs/volume-verb.ts';

const VERB: VolumeVerb = { verb: 'removevolume', gerund: 'removing', word: 'remove' };

export const removeVolume = defineCommand({
  name: 'removevolume',
  usage: 'VMI',
  summary: 'Remove a volume from a running VM.',
  example: [
    '  # Remove a volume that was plugged into a running VM:',
    '  virtctl removevolume myvm --volume-name=mydisk',
    '',
    '  # Remove a volume from the spec of the VM, and from the VM while it runs:',
    '  virtctl removevolume myvm --volume-name=mydisk --persist',
  ].join('\n'),
  flags: { volumeName: volumeNameFlag('name used in volumes section of spec'), ...persistFlags },
  args: 1,
  async run({ args: [name = ''], flags: { persist, ...flags }, connect, print }) {
    const volumeName = requireVolumeName(flags.volumeName);
    const api = await connect();
    const body = { name: volumeName, ...dryRunOption(flags.dryRun, print) };
    print(await sendVolumeVerb(api, VERB, { name, volumeName, persist }, body));
  },
});

/** virtctl identity ...: the identity of virtual machines. */
import { NEW_LAYOUT_ANNOTATION } from '#api/names.ts';
import { isRecordLost, lastRecordUid } from '#api/virtual-machine-identity/record-state.ts';
import { defineCommand } from '#cli/command.ts';
import { dryRunFlag, dryRunQuery } from '#cli/dry-run.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { vmPath } from '#cli/connection/verb-path.ts';
import { findRecord, readVm } from '#cli/connection/vm-objects.ts';
import type { VirtctlGroup } from '#cli/command.ts';
import { identityDiffCommand } from '#cli/commands/identity/diff.ts';
import { identityDuplicates } from '#cli/commands/identity/duplicates.ts';
import { identityHistory } from '#cli/commands/identity/history.ts';
import { identityShow } from '#cli/commands/identity/show.ts';

const identityRenew = defineCommand({
  name: 'renew',
  usage: 'VM',
  summary: 'Allow a virtual machine that lost its identity record to start with new device addresses.',
  details:
    'A virtual machine that lost its record does not start if its device addresses cannot be recovered from a running guest\n' +
    'or a snapshot. This command accepts new addresses for all devices. It applies only to the record that is lost now.',
  example: ["  # Accept new device addresses for the virtual machine 'db':", '  virtctl identity renew db'].join('\n'),
  flags: { dryRun: dryRunFlag },
  args: 1,
  async run({ args: [name = ''], flags, connect, print }) {
    const api = await connect();
    const vm = await readVm(api, name);
    if (!isRecordLost(vm, await findRecord(api, vm))) {
      throw new CommandError(`Cannot renew the identity record of VM ${name}: the record is not lost`);
    }
    const annotations = { [NEW_LAYOUT_ANNOTATION]: lastRecordUid(vm) };
    const { uid } = vm.metadata;
    const path = vmPath('virtualmachines', api.namespace, name) + dryRunQuery(flags.dryRun, print);
    await api.patch(path, { metadata: { uid, annotations } });
    print(`VM ${name} will get new device addresses at its next start`);
  },
});

export const identity: VirtctlGroup = {
  name: 'identity',
  summary: 'Inspect the identity of virtual machines.',
  commands: [identityDiffCommand, identityDuplicates, identityHistory, identityRenew, identityShow],
};

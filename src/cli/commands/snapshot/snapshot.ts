/** virtctl snapshot */
import type { VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import { createSnapshot, waitForSnapshot } from '#cli/commands/snapshot/snapshot-objects.ts';
import { defineCommand } from '#cli/command.ts';
import { readVm } from '#cli/connection/vm-objects.ts';
import { COPY_TIMEOUT, waitFlags, waitLimitMs } from '#cli/wait/wait-flags.ts';
import type { Stored } from '#kube/meta.ts';
import { explainFailure } from '#lib/command-line/command-error.ts';
import { textFlag } from '#lib/command-line/flag.ts';

export const snapshot = defineCommand({
  name: 'snapshot',
  usage: '(VM)',
  summary: 'Take a snapshot of a virtual machine.',
  details: 'The virtual machine can keep running. Use virtctl restore to go back to the snapshot.',
  example: [
    "  # Take a snapshot of a virtual machine called 'myvm', and wait until it is ready:",
    '  virtctl snapshot myvm --wait',
    '',
    '  # Give it a name:',
    '  virtctl snapshot myvm --name=before-upgrade',
  ].join('\n'),
  flags: {
    name: textFlag({ name: 'name', help: 'Name of the snapshot. By default, a name is generated.' }, 'string'),
    ...waitFlags('the snapshot is ready', COPY_TIMEOUT),
  },
  args: 1,
  async run({ args: [vm = ''], flags, connect, print, status }) {
    const limitMs = waitLimitMs(flags, COPY_TIMEOUT);
    const api = await connect();
    await readVm(api, vm);
    const creation = createSnapshot(api, vm, { name: flags.name, prefix: `${vm}-` });
    const created = await explainFailure(`Cannot take a snapshot of VM ${vm}: `, creation);
    print(`Snapshot ${created.metadata.name} of VM ${vm} was created`);
    if (limitMs === undefined) return;
    print(snapshotText(await waitForSnapshot(api, created, { limitMs, status })));
  },
});

/** Renders what the snapshot contains, and how it was taken. */
export function snapshotText({ metadata, status }: Stored<VirtualMachineSnapshot>): string {
  const { includedVolumes = [], excludedVolumes = [] } = status?.snapshotVolumes ?? {};
  const { indications = [] } = status ?? {};
  return [
    `Snapshot ${metadata.name} is ready`,
    includedVolumes.length === 0 ? 'it contains no volumes' : `volumes: ${includedVolumes.join(', ')}`,
    ...(excludedVolumes.length === 0 ? [] : [`not included: ${excludedVolumes.join(', ')}`]),
    ...(indications.length === 0 ? [] : [`taken as: ${indications.join(', ')}`]),
  ].join('; ');
}

/**
 * virtctl clone: a snapshot, and a restore of it to a new name. A clone is another machine: the restore gives it its own
 * firmware uuid, serial number and MAC addresses, because the source has those of the snapshot.
 */
import { needsState } from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS, type VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import { VIRTUAL_MACHINE_RESTORES, type VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import {
  checkVmName,
  createRestore,
  createSnapshot,
  removeObject,
  vmReferenceTo,
  waitForRestore,
  waitForSnapshot,
  omitStateFlag,
  statePolicy,
} from '#cli/commands/snapshot/snapshot-objects.ts';
import { defineCommand } from '#cli/command.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { findObject, readVm } from '#cli/connection/vm-objects.ts';
import { COPY_TIMEOUT, waitFlags, waitLimitMs } from '#cli/wait/wait-flags.ts';
import { WaitLimitError } from '#cli/wait/wait-until.ts';
import type { Stored } from '#kube/meta.ts';
import { CommandError, explainFailure } from '#lib/command-line/command-error.ts';
import { errorMessage } from '#lib/error-message.ts';

export const clone = defineCommand({
  name: 'clone',
  usage: '(VM) NAME',
  summary: 'Create a copy of a virtual machine, with its own identity.',
  details:
    'The virtual machine can keep running. The copy has its own firmware UUID, serial number and MAC addresses, and copies of the disks on claims. It is stopped. ' +
    'Persistent state (TPM, EFI variables) is copied as well, with the keys in it, unless --omit-state is given. ' +
    'The copy is made through a snapshot and a restore. With --wait, both are deleted at the end.',
  example: [
    "  # Create 'myvm-test' as a copy of 'myvm', and wait until it is complete:",
    '  virtctl clone myvm myvm-test --wait',
    '',
    '  # The same with an empty TPM and new EFI variables:',
    '  virtctl clone myvm myvm-test --omit-state --wait',
  ].join('\n'),
  flags: { omitState: omitStateFlag, ...waitFlags('the copy is complete', COPY_TIMEOUT) },
  args: 2,
  completes: ['vm'],
  async run({ args: [name = '', target = ''], flags, connect, print, report, status, clock }) {
    const limitMs = waitLimitMs(flags, COPY_TIMEOUT);
    const api = await connect();
    const source = await readVm(api, name);
    const problem = `Cannot clone VM ${name}: `;
    await explainFailure(problem, checkTarget(api, target));
    const steps = await explainFailure(problem, createSteps(api, name, { target, omitState: flags.omitState }));
    const step = steps.snapshot.metadata.name;
    print(`VM ${name} is being cloned to VM ${target} through snapshot ${step} and restore ${step}`);
    for (const line of cloneWarnings(source, target, flags)) report(`Warning: ${line}`);
    if (limitMs === undefined) {
      print(cleanUpText(step));
      return;
    }
    const untilMs = clock.elapsed() + limitMs;
    try {
      const advice = `it continues, see kubectl describe vmrestore ${step}; ${cleanUpText(step)}`;
      await waitForSnapshot(api, steps.snapshot, { limitMs, status, advice });
      const restMs = Math.max(untilMs - clock.elapsed(), 1000);
      await waitForRestore(api, steps.restore, { limitMs: restMs, status, advice });
    } catch (error) {
      // A copy that takes longer than the limit continues.
      if (!(error instanceof WaitLimitError)) {
        await removeSteps(api, steps).catch((cause: unknown) =>
          report(`Warning: ${leftText(step)}: ${errorMessage(cause)}`),
        );
      }
      throw error;
    }
    const copy = await readVm(api, target);
    await explainFailure(`${leftText(step)}: `, removeSteps(api, steps));
    print(cloneText(source, copy));
  },
});

const cleanUpText = (step: string) =>
  `When it is complete, delete both: kubectl delete vmrestore/${step} vmsnapshot/${step}`;

/** Throws CommandError if the name is not valid or in use. */
async function checkTarget(api: Pick<ApiConnection, 'get' | 'namespace'>, target: string): Promise<void> {
  checkVmName(target);
  if ((await findObject(api, VIRTUAL_MACHINES, target)) === undefined) return;
  throw new CommandError(`VM ${target} already exists; choose another name`);
}

const leftText = (step: string) => `Cannot delete snapshot ${step} and restore ${step} of the clone`;

interface CloneSteps {
  readonly snapshot: Stored<VirtualMachineSnapshot>;
  readonly restore: Stored<VirtualMachineRestore>;
}

/** Creates the snapshot and the restore, which waits for it. If the restore is refused, the snapshot is deleted. */
async function createSteps(
  api: Pick<ApiConnection, 'post' | 'remove' | 'namespace'>,
  source: string,
  { target, omitState }: { readonly target: string; readonly omitState: boolean },
): Promise<CloneSteps> {
  const snapshot = await createSnapshot(api, source, { prefix: `clone-${target}-` });
  const { name } = snapshot.metadata;
  try {
    const restore = await createRestore(
      api,
      { name, prefix: '' },
      {
        target: vmReferenceTo(target),
        virtualMachineSnapshotName: name,
        volumeRestorePolicy: 'PrefixTargetName',
        ...statePolicy(omitState),
      },
    );
    return { snapshot, restore };
  } catch (error) {
    await removeObject(api, VIRTUAL_MACHINE_SNAPSHOTS, snapshot).catch(() => undefined);
    throw error;
  }
}

async function removeSteps(api: Pick<ApiConnection, 'remove'>, { snapshot, restore }: CloneSteps): Promise<void> {
  await removeObject(api, VIRTUAL_MACHINE_RESTORES, restore);
  await removeObject(api, VIRTUAL_MACHINE_SNAPSHOTS, snapshot);
}

/** Returns the parts of the copy that are not its own. */
export function cloneWarnings(
  { metadata, spec }: Stored<VirtualMachine>,
  target: string,
  { omitState }: { readonly omitState: boolean },
): string[] {
  const { name } = metadata;
  const template = spec.template.spec;
  const hostDisks = (template?.volumes ?? []).filter(({ hostDisk }) => hostDisk !== undefined);
  const state =
    `VM ${target} gets a copy of the persistent state of VM ${name}: the keys in its TPM and its EFI variables ` +
    'are the same; to avoid that, delete the copy and clone again with --omit-state';
  return [
    ...(template !== undefined && needsState(template) && !omitState ? [state] : []),
    ...hostDisks.map(
      (volume) => `VM ${target} uses the same host disk ${volume.name} as VM ${name}; do not run both at once`,
    ),
  ];
}

/** Renders the identity of the copy. Throws CommandError if it is that of the source. */
export function cloneText(source: Stored<VirtualMachine>, copy: Stored<VirtualMachine>): string {
  const { name } = copy.metadata;
  const [uuid, sourceUuid] = [copy, source].map(({ spec }) => spec.template.spec?.domain.firmware?.uuid);
  if (uuid !== undefined && uuid === sourceUuid) {
    const why = `it has the firmware uuid ${uuid} of VM ${source.metadata.name}, which was changed or deleted meanwhile`;
    throw new CommandError(`VM ${name} is not a clone: ${why}; delete VM ${name}, or keep it as the same machine`);
  }
  const interfaces = copy.spec.template.spec?.domain.devices?.interfaces ?? [];
  const macs = interfaces.flatMap((one) => (one.macAddress ? [`${one.name} ${one.macAddress}`] : []));
  return [
    `VM ${name} is a clone of VM ${source.metadata.name}`,
    ...(uuid === undefined ? [] : [`firmware uuid ${uuid}`]),
    macs.length === 0 ? 'its MAC addresses are new as well' : `MAC addresses: ${macs.join(', ')}`,
    `it is stopped, start it with virtctl start ${name}`,
  ].join('; ');
}

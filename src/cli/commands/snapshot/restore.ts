/** virtctl restore */
import { STATE_LABEL } from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { isFinal } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS, type VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import type { VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import {
  checkVmName,
  createRestore,
  vmReferenceTo,
  waitForRestore,
  omitStateFlag,
  statePolicy,
} from '#cli/commands/snapshot/snapshot-objects.ts';
import { defineCommand } from '#cli/command.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { findInstance, findObject, readObject } from '#cli/connection/vm-objects.ts';
import { COPY_TIMEOUT, waitFlags, waitLimitMs } from '#cli/wait/wait-flags.ts';
import type { Stored } from '#kube/meta.ts';
import { CommandError, explainFailure } from '#lib/command-line/command-error.ts';
import { requiredFlag, switchFlag, textFlag } from '#lib/command-line/flag.ts';

export const restore = defineCommand({
  name: 'restore',
  usage: '(VM)',
  summary: 'Restore a virtual machine from a snapshot.',
  details:
    'The virtual machine gets the spec, identity and disks of the snapshot and stays stopped. Its disks are new claims; the current ones are kept. ' +
    'With --target, a new virtual machine is created instead.',
  example: [
    "  # Turn a virtual machine called 'myvm' back into what it was, and wait until that is done:",
    '  virtctl restore myvm --snapshot=before-upgrade --wait',
    '',
    '  # The same for a running virtual machine, which is stopped:',
    '  virtctl restore myvm --snapshot=before-upgrade --stop --wait',
    '',
    '  # Restore into a new virtual machine:',
    '  virtctl restore myvm --snapshot=before-upgrade --target=myvm-old --wait',
    '',
    '  # The same without the keys of its TPM:',
    '  virtctl restore myvm --snapshot=before-upgrade --target=myvm-old --omit-state --wait',
  ].join('\n'),
  flags: {
    snapshot: requiredFlag({ name: 'snapshot', help: 'Name of the snapshot.', completes: 'vmsnapshot' }, 'string'),
    target: textFlag({ name: 'target', help: 'Name of a new virtual machine to restore into.' }, 'string'),
    stop: switchFlag({ name: 'stop', help: 'Stop the virtual machine if it is running.' }),
    omitState: omitStateFlag,
    ...waitFlags('the restore is complete', COPY_TIMEOUT),
  },
  args: 1,
  async run({ args: [vm = ''], flags, connect, print, report, status }) {
    const limitMs = waitLimitMs(flags, COPY_TIMEOUT);
    const { snapshot, target = vm, stop, omitState } = flags;
    const api = await connect();
    const request = { vm, snapshot, target, stop };
    const source = await explainFailure(`Cannot restore VM ${vm}: `, checkRequest(api, request));
    const creation = createRestore(
      api,
      { prefix: `${target}-` },
      {
        target: vmReferenceTo(target),
        virtualMachineSnapshotName: snapshot,
        ...(stop ? { targetReadinessPolicy: 'StopTarget' as const } : {}),
        ...statePolicy(omitState),
      },
    );
    const created = await explainFailure(`Cannot restore VM ${vm}: `, creation);
    print(`Restore ${created.metadata.name} of VM ${target} from snapshot ${snapshot} was created`);
    const isCopy = target !== vm && (await findObject(api, VIRTUAL_MACHINES, vm)) !== undefined;
    if (isCopy && !omitState && includesState(source)) report(`Warning: ${copiedStateText({ vm, target })}`);
    if (limitMs === undefined) return;
    print(restoreText(await waitForRestore(api, created, { limitMs, status })));
  },
});

interface RestoreRequest {
  readonly vm: string;
  readonly snapshot: string;
  readonly target: string;
  readonly stop: boolean;
}

/** Refuses a restore that would wait or fail, and resolves to the snapshot. Throws CommandError. */
async function checkRequest(
  api: Pick<ApiConnection, 'get' | 'namespace'>,
  request: RestoreRequest,
): Promise<VirtualMachineSnapshot> {
  const snapshot = await readObject(api, VIRTUAL_MACHINE_SNAPSHOTS, request.snapshot);
  const refusal = refuseSnapshot(request, snapshot);
  if (refusal !== undefined) throw new CommandError(refusal);
  checkVmName(request.target);
  const target = await findObject(api, VIRTUAL_MACHINES, request.target);
  if (target === undefined) return snapshot;
  if (request.target !== request.vm) {
    throw new CommandError(`VM ${request.target} already exists; choose another name for --target`);
  }
  const vmi = await findInstance(api, target);
  if (request.stop || vmi === undefined || isFinal(vmi)) return snapshot;
  throw new CommandError(`it is running; stop it with virtctl stop ${request.vm} --wait, or add --stop`);
}

/** Returns why the snapshot cannot be restored, or undefined if it can. */
export function refuseSnapshot(
  { vm, snapshot: name }: Pick<RestoreRequest, 'vm' | 'snapshot'>,
  snapshot: VirtualMachineSnapshot,
): string | undefined {
  const source = snapshot.spec.source.name;
  if (source !== vm) {
    return `snapshot ${name} is of VM ${source}; use virtctl restore ${source} --snapshot=${name}`;
  }
  if (snapshot.status?.phase !== 'Failed') return undefined;
  return `snapshot ${name} has failed (${snapshot.status.error?.message ?? 'no reason given'}); choose another one`;
}

/** Reports whether the snapshot contains persistent state, which is listed like a volume. */
export function includesState({ status }: VirtualMachineSnapshot): boolean {
  return status?.snapshotVolumes?.includedVolumes?.some((name) => name.startsWith(`${STATE_LABEL}-`)) === true;
}

function copiedStateText({ vm, target }: Pick<RestoreRequest, 'vm' | 'target'>): string {
  return (
    `VM ${target} gets a copy of the persistent state of VM ${vm}: the keys in its TPM and its EFI variables are those ` +
    'of the snapshot; to avoid that, delete the copy and restore again with --omit-state'
  );
}

/** Renders the result: the VM and the claims of its disks. */
export function restoreText({ spec, status }: Stored<VirtualMachineRestore>): string {
  const { name } = spec.target;
  const claims = (status?.restores ?? []).map(
    ({ volumeName, persistentVolumeClaim }) => `volume ${volumeName} is claim ${persistentVolumeClaim}`,
  );
  const result = `VM ${name} was restored from snapshot ${spec.virtualMachineSnapshotName}`;
  return [result, ...claims, `it is stopped, start it with virtctl start ${name}`].join('; ');
}

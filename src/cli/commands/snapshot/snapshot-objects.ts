/** Creates snapshots and restores of VMs, and waits until they end. */
import { KUBEVIRT_GROUP } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import {
  isSnapshotComplete,
  VIRTUAL_MACHINE_SNAPSHOTS,
  type VirtualMachineSnapshot,
} from '#api/virtual-machine-snapshot/kind.ts';
import {
  VIRTUAL_MACHINE_RESTORES,
  type RestoreSpec,
  type VirtualMachineRestore,
} from '#api/virtual-machine-restore/kind.ts';
import { collectionPath, objectPath } from '#client/resource-path.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { findObject } from '#cli/connection/vm-objects.ts';
import { waitUntil, type WaitState } from '#cli/wait/wait-until.ts';
import { findCondition } from '#kube/conditions.ts';
import {
  apiVersionOf,
  isDeleting,
  type KubeObject,
  type ObjectMeta,
  type ResourceType,
  type Stored,
} from '#kube/meta.ts';
import { nameErrors } from '#kube/names.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { switchFlag } from '#lib/command-line/flag.ts';
import type { StatusOutput } from '#lib/terminal/status-output.ts';

type Reader = Pick<ApiConnection, 'get' | 'namespace'>;

/** Creates an object with this name, or with a generated one that begins with `prefix`. Throws like `api.post`. */
async function createNamed<T extends KubeObject>(
  api: Pick<ApiConnection, 'post' | 'namespace'>,
  type: ResourceType<T>,
  { name, prefix }: NewName,
  spec: object,
): Promise<Stored<T>> {
  const { namespace } = api;
  const metadata: ObjectMeta = name === undefined ? { namespace, generateName: prefix } : { namespace, name };
  const body = { apiVersion: apiVersionOf(type), kind: type.kind, metadata, spec };
  return (await api.post(collectionPath(type, namespace), body)) as Stored<T>;
}

interface NewName {
  readonly name?: string | undefined;
  readonly prefix: string;
}

/** The flag of commands that create a VM or bring one back. */
export const omitStateFlag = switchFlag({
  name: 'omit-state',
  help: 'Leave out the persistent state of the snapshot (TPM, EFI variables): a new VM gets an empty one.',
});

/** Returns the part of a restore that the flag decides. */
export function statePolicy(omitState: boolean): Pick<RestoreSpec, 'persistentStatePolicy'> {
  return omitState ? { persistentStatePolicy: 'Omit' } : {};
}

export const vmReferenceTo = (name: string) => ({ apiGroup: KUBEVIRT_GROUP, kind: VIRTUAL_MACHINES.kind, name });

export async function createSnapshot(
  api: Pick<ApiConnection, 'post' | 'namespace'>,
  vm: string,
  name: NewName,
): Promise<Stored<VirtualMachineSnapshot>> {
  return await createNamed(api, VIRTUAL_MACHINE_SNAPSHOTS, name, { source: vmReferenceTo(vm) });
}

export async function createRestore(
  api: Pick<ApiConnection, 'post' | 'namespace'>,
  name: NewName,
  spec: RestoreSpec,
): Promise<Stored<VirtualMachineRestore>> {
  return await createNamed(api, VIRTUAL_MACHINE_RESTORES, name, spec);
}

/** Throws CommandError if a VM cannot have this name. */
export function checkVmName(name: string): void {
  const [error] = nameErrors('subdomain', name);
  if (error !== undefined) throw new CommandError(`${JSON.stringify(name)} cannot be the name of a VM: ${error}`);
}

/** Deletes a snapshot or a restore. Throws like `api.remove`. */
export async function removeObject<T extends KubeObject>(
  api: Pick<ApiConnection, 'remove'>,
  type: ResourceType<T>,
  { metadata: { namespace, name, uid } }: Stored<T>,
): Promise<void> {
  await api.remove(objectPath(type, { namespace, name }), uid);
}

interface WaitOptions {
  readonly limitMs: number;
  /** Replaces the advice at the limit. */
  readonly advice?: string | undefined;
  readonly status: StatusOutput;
}

/** Waits until the snapshot is ready and no longer holds its VM. Throws CommandError if it fails. */
export async function waitForSnapshot(
  api: Reader,
  { metadata, spec }: Stored<VirtualMachineSnapshot>,
  { limitMs, status, advice }: WaitOptions,
): Promise<Stored<VirtualMachineSnapshot>> {
  const wait = {
    limitMs,
    problem: `Cannot confirm that snapshot ${metadata.name} is ready`,
    advice: advice ?? `it continues, see kubectl describe vmsnapshot ${metadata.name}; to cancel it, delete it`,
    read: async () => {
      const snapshot = await findObject(api, VIRTUAL_MACHINE_SNAPSHOTS, metadata.name);
      return judgeSnapshot(metadata, snapshot, await findObject(api, VIRTUAL_MACHINES, spec.source.name));
    },
  };
  return await waitUntil(wait, status);
}

type Identified = Pick<Stored['metadata'], 'name' | 'uid'>;

export function judgeSnapshot(
  { name, uid }: Identified,
  snapshot: Stored<VirtualMachineSnapshot> | undefined,
  vm: VirtualMachine | undefined,
): WaitState<Stored<VirtualMachineSnapshot>> {
  const problem = `Cannot take snapshot ${name}`;
  if (snapshot?.metadata.uid !== uid || isDeleting(snapshot)) return { failed: `${problem}: it was deleted meanwhile` };
  const { phase = 'InProgress', error, conditions, readyToUse } = snapshot.status ?? {};
  if (phase === 'Failed') return { failed: `${problem}: ${error?.message ?? 'no reason given'}` };
  if (isSnapshotComplete(snapshot) && readyToUse === true) {
    if (vm?.status?.snapshotInProgress !== name) return { done: snapshot };
    return { waiting: `snapshot ${name}: ${phase} (it still holds the VM)` };
  }
  const why = error?.message ?? findCondition(conditions, 'Progressing')?.message;
  return { waiting: `snapshot ${name}: ${phase}${why ? ` (${why})` : ''}` };
}

/** Waits until the restore is complete and no longer holds its target. Throws CommandError if it fails. */
export async function waitForRestore(
  api: Reader,
  { metadata, spec }: Stored<VirtualMachineRestore>,
  { limitMs, status, advice }: WaitOptions,
): Promise<Stored<VirtualMachineRestore>> {
  const wait = {
    limitMs,
    problem: `Cannot confirm that restore ${metadata.name} is complete`,
    advice: advice ?? `it continues, see kubectl describe vmrestore ${metadata.name}`,
    read: async () => {
      const restore = await findObject(api, VIRTUAL_MACHINE_RESTORES, metadata.name);
      return judgeRestore(metadata, restore, await findObject(api, VIRTUAL_MACHINES, spec.target.name));
    },
  };
  return await waitUntil(wait, status);
}

export function judgeRestore(
  { name, uid }: Identified,
  restore: Stored<VirtualMachineRestore> | undefined,
  vm: VirtualMachine | undefined,
): WaitState<Stored<VirtualMachineRestore>> {
  if (restore?.metadata.uid !== uid || isDeleting(restore)) {
    return { failed: `Cannot complete restore ${name}: it was deleted meanwhile` };
  }
  const { complete, conditions } = restore.status ?? {};
  const failure = findCondition(conditions, 'Failure');
  if (failure?.status === 'True') {
    return { failed: `Cannot complete restore ${name}: ${failure.message ?? 'no reason given'}` };
  }
  if (complete === true) {
    if (vm?.status?.restoreInProgress !== name) return { done: restore };
    return { waiting: `restore ${name}: complete (it still holds the VM)` };
  }
  const why = findCondition(conditions, 'Progressing')?.message;
  return { waiting: `restore ${name}: in progress${why ? ` (${why})` : ''}` };
}

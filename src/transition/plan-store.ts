/**
 * The plan of a Job: made once from the VMs as they are, written before anything else is done, and read by whoever comes
 * after a kill. Until its last part is written nothing has been done, and it may be made anew.
 */
import type { JobReference } from '#api/machine-types/kinds.ts';
import { CONFIG_MAPS, type ConfigMap } from '#kube/core-kinds.ts';
import { TRANSITION_LABEL } from '#api/machine-types/names.ts';
import type { TransitionOptions } from '#api/machine-types/options.ts';
import { planConfigMaps, readPlan, readProgress, type EntryNote, type PlanEntry } from '#api/machine-types/plan.ts';
import { runningInstance, selectVm, type SelectContext } from '#api/machine-types/select-vm.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import { objectKey } from '#client/object-key.ts';
import { listAll } from '#client/paged-list.ts';
import { isApiError } from '#kube/api-error.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';

export interface StoredPlan {
  readonly entries: readonly PlanEntry[];
  /** By the index of their entry. */
  readonly notes: Map<number, EntryNote>;
  /** Names of the ConfigMaps that are there. */
  readonly names: ReadonlySet<string>;
  /** Nobody has done anything about it yet. */
  readonly isNew: boolean;
}

export interface PlanParts {
  readonly client: Pick<Client, 'list' | 'create' | 'update'>;
  readonly job: JobReference;
  readonly signal: AbortSignal;
}

/** `make` is called where there is no whole plan. */
export async function storedPlan(parts: PlanParts, make: () => Promise<readonly PlanEntry[]>): Promise<StoredPlan> {
  const known = await read(parts);
  if (known !== undefined) return known;
  const entries = await make();
  for (const part of planConfigMaps(parts.job, entries)) {
    const theirs = await put(parts, part);
    if (theirs !== undefined) return theirs;
  }
  return { entries, notes: new Map(), names: new Set(), isNew: true };
}

/** Undefined where there is no whole plan. */
async function read({ client, job, signal }: PlanParts): Promise<StoredPlan | undefined> {
  const labelSelector = `${TRANSITION_LABEL}=${job.uid}`;
  // Each may be a quarter of a mebibyte.
  const scope = { namespace: job.namespace, labelSelector, pageSize: 50 };
  const { items } = await listAll(client, CONFIG_MAPS, { ...scope, signal });
  const entries = readPlan(job, items);
  if (entries === undefined) return undefined;
  const names = new Set(items.map(({ metadata }) => metadata.name));
  return { entries, notes: readProgress(job, items), names, isNew: false };
}

/** The plan of somebody else who runs for the same Job, and was faster: theirs counts. */
async function put(parts: PlanParts, part: ConfigMap): Promise<StoredPlan | undefined> {
  const { client, signal } = parts;
  try {
    await client.create(CONFIG_MAPS, part, { signal });
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error;
    const theirs = await read(parts);
    if (theirs !== undefined) return theirs;
    // Of a plan that was not finished, or of an earlier Job of this name.
    await client.update(CONFIG_MAPS, part, { signal });
  }
  return undefined;
}

/** In the order of their names, so that people find their way. Pure. */
export function makePlan(
  vms: readonly Stored<VirtualMachine>[],
  instanceOf: (key: string) => Stored<VirtualMachineInstance> | undefined,
  options: TransitionOptions,
  context: SelectContext,
): PlanEntry[] {
  const entries = vms.flatMap((vm): [string, PlanEntry][] => {
    if (isDeleting(vm)) return [];
    const key = objectKey(vm);
    const vmi = instanceOf(key);
    const selection = selectVm(vm, vmi, options, context);
    if (selection === undefined) return [];
    const { namespace = '', name, uid } = vm.metadata;
    const vmiUid = runningInstance(vm, vmi)?.metadata.uid;
    return [[key, { namespace, name, uid, ...(vmiUid !== undefined && { vmiUid }), ...selection }]];
  });
  return entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry);
}

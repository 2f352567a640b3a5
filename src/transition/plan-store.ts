/**
 * Stores the plan of a Job. The plan is created once from the current VMs, written before any other action, and read
 * again after a restart of the Job. Until its last part is written nothing has been done, so an incomplete plan is
 * replaced.
 */
import type { JobReference } from '#api/machine-types/kinds.ts';
import { CONFIG_MAPS, type ConfigMap } from '#kube/core-kinds.ts';
import { TRANSITION_LABEL } from '#api/machine-types/names.ts';
import type { TransitionOptions } from '#api/machine-types/options.ts';
import {
  buildPlanConfigMaps,
  readPlan,
  readProgress,
  type EntryNote,
  type PlanEntry,
} from '#api/machine-types/plan.ts';
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
  /** Notes by the index of their entry. */
  readonly notes: Map<number, EntryNote>;
  /** Names of the existing ConfigMaps. */
  readonly names: ReadonlySet<string>;
  /** True if no process has worked on the plan yet. */
  readonly isNew: boolean;
}

export interface PlanParts {
  readonly client: Pick<Client, 'list' | 'create' | 'update'>;
  readonly job: JobReference;
  readonly signal: AbortSignal;
}

/** Resolves to the stored plan; calls `make` and stores the result if there is no complete plan. */
export async function loadOrCreatePlan(
  parts: PlanParts,
  make: () => Promise<readonly PlanEntry[]>,
): Promise<StoredPlan> {
  const known = await readStoredPlan(parts);
  if (known !== undefined) return known;
  const entries = await make();
  for (const part of buildPlanConfigMaps(parts.job, entries)) {
    const existing = await writePart(parts, part);
    if (existing !== undefined) return existing;
  }
  return { entries, notes: new Map(), names: new Set(), isNew: true };
}

/** Resolves to undefined if there is no complete plan. */
async function readStoredPlan({ client, job, signal }: PlanParts): Promise<StoredPlan | undefined> {
  const labelSelector = `${TRANSITION_LABEL}=${job.uid}`;
  // Each ConfigMap may have 256 KiB.
  const scope = { namespace: job.namespace, labelSelector, pageSize: 50 };
  const { items } = await listAll(client, CONFIG_MAPS, { ...scope, signal });
  const entries = readPlan(job, items);
  if (entries === undefined) return undefined;
  const names = new Set(items.map(({ metadata }) => metadata.name));
  return { entries, notes: readProgress(job, items), names, isNew: false };
}

/** Writes one part. Resolves to the plan of another process of the same Job, if that has completed one first. */
async function writePart(parts: PlanParts, part: ConfigMap): Promise<StoredPlan | undefined> {
  const { client, signal } = parts;
  try {
    await client.create(CONFIG_MAPS, part, { signal });
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error;
    const existing = await readStoredPlan(parts);
    if (existing !== undefined) return existing;
    // The part belongs to an incomplete plan or to an earlier Job of this name.
    await client.update(CONFIG_MAPS, part, { signal });
  }
  return undefined;
}

/** Returns the entries for the selected VMs, sorted by namespace and name. Pure. */
export function buildPlan(
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

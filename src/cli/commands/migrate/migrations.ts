/** Lists the migrations of one VM, and reports the progress of a migration until it ends. */
import { VMI_NAME_LABEL } from '#api/names.ts';
import {
  isFinalPhase,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  type VirtualMachineInstanceMigration,
} from '#api/virtual-machine-instance-migration/kind.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { waitUntil, type WaitState } from '#cli/wait/wait-until.ts';
import { listCollection } from '#cli/connection/list-collection.ts';
import { barText, byteRateText, bytesText, remainingText } from '#lib/terminal/progress-text.ts';
import type { StatusOutput } from '#lib/terminal/status-output.ts';
import { findObject } from '#cli/connection/vm-objects.ts';
import { collectionPath } from '#client/resource-path.ts';
import type { Stored } from '#kube/meta.ts';
import { labelValueErrors } from '#kube/names.ts';

const TYPE = VIRTUAL_MACHINE_INSTANCE_MIGRATIONS;

type Api = Pick<ApiConnection, 'get' | 'namespace'>;
export type ListedMigration = Stored<VirtualMachineInstanceMigration>;

/** Returns all migrations of a VM, newest first, including those that ended. */
export async function listMigrations(api: Api, vm: string, report: (line: string) => void): Promise<ListedMigration[]> {
  const path = collectionPath(TYPE, api.namespace);
  // A name that is too long for a label is not labelled; then all migrations are listed.
  const selector = labelValueErrors(vm).length === 0 ? { labelSelector: `${VMI_NAME_LABEL}=${vm}` } : {};
  const pick = (object: unknown) => {
    const migration = object as ListedMigration;
    return migration.spec.vmiName === vm ? migration : undefined;
  };
  const found = await listCollection(api, { path, ...selector }, pick, report);
  return found.toSorted((a, b) => b.metadata.creationTimestamp.localeCompare(a.metadata.creationTimestamp));
}

/** Shows the progress of a migration and returns it once it has succeeded. Throws CommandError if it fails. */
export async function followMigration(
  api: Api,
  { vm, name }: { readonly vm: string; readonly name: string },
  { limitMs, status }: { readonly limitMs: number; readonly status: StatusOutput },
): Promise<ListedMigration> {
  const wait = {
    limitMs,
    problem: `Cannot confirm that VM ${vm} has migrated`,
    advice: `the migration continues, see kubectl get vmim ${name}; cancel it with virtctl migrate-cancel ${vm}`,
    read: async () => judgeMigration(vm, name, await findObject(api, TYPE, name)),
  };
  return await waitUntil(wait, status);
}

function judgeMigration(vm: string, name: string, migration: ListedMigration | undefined): WaitState<ListedMigration> {
  if (migration === undefined) return { failed: `Migration ${name} of VM ${vm} was canceled` };
  const phase = migration.status?.phase ?? 'Pending';
  if (phase === 'Succeeded') return { done: migration };
  if (isFinalPhase(phase)) return { failed: `Migration ${name} of VM ${vm} failed: ${reasonOf(migration)}` };
  return { waiting: { plain: progressLine(migration), live: (columns) => progressBar(migration, columns), phase } };
}

function reasonOf({ status }: ListedMigration): string {
  return status?.migrationState?.failureReason || status?.message || 'no reason given';
}

/** Renders `migration db-x: Running, 512.0 MiB of 2.0 GiB, 96.0 MiB/s, 16s left`. */
export function progressLine(migration: ListedMigration): string {
  const { phase = 'Pending', message } = migration.status ?? {};
  const shown = `migration ${migration.metadata.name}: ${phase}${message ? ` (${message})` : ''}`;
  return [shown, ...amountTexts(migration)].join(', ');
}

/** Renders the same as a bar, once the amount of data is known. */
function progressBar(migration: ListedMigration, columns: number): string {
  const { phase = 'Pending', migrationProgress: progress } = migration.status ?? {};
  const { dataTotalBytes: total, dataProcessedBytes: done = 0 } = progress ?? {};
  if (total === undefined) return progressLine(migration);
  const label = `${migration.metadata.name}: ${phase}`;
  return barText({ label, done, total, detail: amountTexts(migration).join(', ') }, columns);
}

/** A guest that keeps writing makes the remaining time longer than estimated. */
function amountTexts({ status }: ListedMigration): string[] {
  const { dataTotalBytes: total, dataProcessedBytes: done = 0, bytesPerSecond: rate } = status?.migrationProgress ?? {};
  return [
    ...(total === undefined ? [] : [`${bytesText(done)} of ${bytesText(total)}`]),
    ...(rate === undefined ? [] : [`${byteRateText(rate)}${remainingText((total ?? 0) - done, rate)}`]),
  ];
}

/** Renders the result of a migration that has succeeded. */
export function resultLine(vm: string, { status }: ListedMigration): string {
  const { sourceNode, targetNode } = status?.migrationState ?? {};
  const { downtimeMs } = status?.migrationProgress ?? {};
  const pause = downtimeMs === undefined ? '' : `; downtime ${downtimeMs} ms`;
  return `VM ${vm} migrated from ${sourceNode ?? '?'} to ${targetNode ?? '?'}${pause}`;
}

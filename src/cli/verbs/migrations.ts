/** Lists the migrations of one VM, and reports the progress of a migration until it ends. */
import { VMI_NAME_LABEL } from '#api/names.ts';
import {
  isFinalPhase,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  type VirtualMachineInstanceMigration,
} from '#api/virtual-machine-instance-migration/kind.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { CommandError } from '#cli/parsing/flags.ts';
import { sleepAlive } from '#cli/terminal/sleep-alive.ts';
import { listCollection } from '#cli/connection/list-collection.ts';
import { bytesText, type ProgressOptions } from '#cli/terminal/progress.ts';
import { findObject } from '#cli/connection/vm-objects.ts';
import { collectionPath } from '#client/resource-path.ts';
import type { Stored } from '#kube/meta.ts';
import { labelValueErrors } from '#kube/names.ts';

const TYPE = VIRTUAL_MACHINE_INSTANCE_MIGRATIONS;
const POLL_INTERVAL_MS = 1000;
/** The interval of progress lines within one phase. */
const REPORT_INTERVAL_MS = 5000;

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

/** Reports the progress of a migration and returns it once it has succeeded. Throws CommandError if it fails. */
export async function followMigration(
  api: Api,
  vm: string,
  name: string,
  { clock, report }: ProgressOptions,
): Promise<ListedMigration> {
  let reported: { readonly phase: string; readonly line: string; readonly at: number } | undefined;
  for (;;) {
    const migration = await findObject(api, TYPE, name);
    if (migration === undefined) throw new CommandError(`Migration ${name} of VM ${vm} was canceled`);
    const phase = migration.status?.phase ?? 'Pending';
    if (phase === 'Succeeded') return migration;
    if (isFinalPhase(phase)) throw new CommandError(`Migration ${name} of VM ${vm} failed: ${reasonOf(migration)}`);
    const [line, now] = [progressLine(migration), clock.elapsed()];
    const isDue = reported === undefined || reported.phase !== phase || now - reported.at >= REPORT_INTERVAL_MS;
    if (isDue && reported?.line !== line) {
      reported = { phase, line, at: now };
      report(line);
    }
    await sleepAlive(clock, POLL_INTERVAL_MS);
  }
}

function reasonOf({ status }: ListedMigration): string {
  return status?.migrationState?.failureReason || status?.message || 'no reason given';
}

/** Renders `migration db-x: Running, 512.0 MiB of 2.0 GiB, 96.0 MiB/s`. */
export function progressLine({ metadata, status }: ListedMigration): string {
  const { phase = 'Pending', message, migrationProgress: progress } = status ?? {};
  const { dataTotalBytes: total, dataProcessedBytes: done = 0, bytesPerSecond: rate } = progress ?? {};
  return [
    `migration ${metadata.name}: ${phase}${message ? ` (${message})` : ''}`,
    ...(total === undefined ? [] : [`${bytesText(done)} of ${bytesText(total)}`]),
    ...(rate === undefined ? [] : [`${bytesText(rate)}/s`]),
  ].join(', ');
}

/** Renders the result of a migration that has succeeded. */
export function resultLine(vm: string, { status }: ListedMigration): string {
  const { sourceNode, targetNode } = status?.migrationState ?? {};
  const { downtimeMs } = status?.migrationProgress ?? {};
  const pause = downtimeMs === undefined ? '' : `; downtime ${downtimeMs} ms`;
  return `VM ${vm} migrated from ${sourceNode ?? '?'} to ${targetNode ?? '?'}${pause}`;
}

/** The migrations of one VM: finding them, and telling of one until it is over. */
import { VMI_NAME_LABEL } from '#api/names.ts';
import {
  isFinalPhase,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  type VirtualMachineInstanceMigration,
} from '#api/virtual-machine-instance-migration/kind.ts';
import type { ApiConnection } from '#cli/api-connection.ts';
import { CommandError } from '#cli/flags.ts';
import { keepWaiting } from '#cli/keep-waiting.ts';
import { listAll } from '#cli/list-all.ts';
import { bytesText, type ProgressOptions } from '#cli/progress.ts';
import { findObject } from '#cli/vm-objects.ts';
import { collectionPath } from '#client/resource-path.ts';
import type { Stored } from '#kube/meta.ts';
import { labelValueErrors } from '#kube/names.ts';

const TYPE = VIRTUAL_MACHINE_INSTANCE_MIGRATIONS;
const LOOK_EVERY_MS = 1000;
/** Within one phase. */
const TELL_EVERY_MS = 5000;

type Api = Pick<ApiConnection, 'get' | 'namespace'>;
export type Migration = Stored<VirtualMachineInstanceMigration>;

/** Newest first, ended ones included. */
export async function migrationsOf(api: Api, vm: string, say: (line: string) => void): Promise<Migration[]> {
  const path = collectionPath(TYPE, api.namespace);
  // Names may be longer than labels: then it is not labelled, and looked for among all.
  const few = labelValueErrors(vm).length === 0 ? { labelSelector: `${VMI_NAME_LABEL}=${vm}` } : {};
  const pick = (object: unknown) => {
    const migration = object as Migration;
    return migration.spec.vmiName === vm ? migration : undefined;
  };
  const found = await listAll(api, { path, ...few }, pick, say);
  return found.toSorted((a, b) => b.metadata.creationTimestamp.localeCompare(a.metadata.creationTimestamp));
}

/** Tells of a migration until it has succeeded, and gives it as it is then. Throws CommandError where it does not. */
export async function followMigration(
  api: Api,
  vm: string,
  name: string,
  { clock, say }: ProgressOptions,
): Promise<Migration> {
  let told: { readonly phase: string; readonly line: string; readonly at: number } | undefined;
  for (;;) {
    const migration = await findObject(api, TYPE, name);
    if (migration === undefined) throw new CommandError(`Migration ${name} of VM ${vm} was canceled`);
    const phase = migration.status?.phase ?? 'Pending';
    if (phase === 'Succeeded') return migration;
    if (isFinalPhase(phase)) throw new CommandError(`Migration ${name} of VM ${vm} failed: ${reasonOf(migration)}`);
    const [line, now] = [progressLine(migration), clock.elapsed()];
    const isDue = told === undefined || told.phase !== phase || now - told.at >= TELL_EVERY_MS;
    if (isDue && told?.line !== line) {
      told = { phase, line, at: now };
      say(line);
    }
    await keepWaiting(clock, LOOK_EVERY_MS);
  }
}

function reasonOf({ status }: Migration): string {
  return status?.migrationState?.failureReason || status?.message || 'no reason given';
}

/** `migration db-x: Running, 512.0 MiB of 2.0 GiB, 96.0 MiB/s`. */
export function progressLine({ metadata, status }: Migration): string {
  const { phase = 'Pending', message, migrationProgress: progress } = status ?? {};
  const { dataTotalBytes: total, dataProcessedBytes: done = 0, bytesPerSecond: rate } = progress ?? {};
  return [
    `migration ${metadata.name}: ${phase}${message ? ` (${message})` : ''}`,
    ...(total === undefined ? [] : [`${bytesText(done)} of ${bytesText(total)}`]),
    ...(rate === undefined ? [] : [`${bytesText(rate)}/s`]),
  ].join(', ');
}

/** What became of one that has succeeded. */
export function arrivalLine(vm: string, { status }: Migration): string {
  const { sourceNode, targetNode } = status?.migrationState ?? {};
  const { downtimeMs } = status?.migrationProgress ?? {};
  const pause = downtimeMs === undefined ? '' : `; downtime ${downtimeMs} ms`;
  return `VM ${vm} migrated from ${sourceNode ?? '?'} to ${targetNode ?? '?'}${pause}`;
}

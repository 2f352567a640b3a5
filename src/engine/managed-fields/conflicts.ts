/** Builds the 409 of an apply that would take fields from other managers. */
import { ApiError, type StatusCause } from '#kube/api-error.ts';
import { describePaths } from '#kube/field-sets/describe-paths.ts';
import type { FieldSet } from '#kube/field-sets/field-set.ts';
import type { EntryHead } from '#engine/managed-fields/entries.ts';

export interface FieldConflict {
  readonly identity: string;
  readonly head: EntryHead;
  readonly fields: FieldSet;
}

export function conflictError(conflicts: readonly FieldConflict[]): ApiError {
  const conflictsByManager = conflicts
    .toSorted((a, b) => (a.identity < b.identity ? -1 : 1))
    .map(({ head, fields }) => ({ manager: managerText(head), paths: describePaths(fields) }));
  const causes: StatusCause[] = conflictsByManager.flatMap(({ manager, paths }) =>
    paths.map((field) => ({ reason: 'FieldManagerConflict', message: `conflict with ${manager}`, field })),
  );
  return new ApiError(409, 'Conflict', messageOf(conflictsByManager, causes.length), { details: { causes } });
}

interface ManagerConflict {
  readonly manager: string;
  readonly paths: readonly string[];
}

function messageOf(conflictsByManager: readonly ManagerConflict[], count: number): string {
  const [first] = conflictsByManager;
  if (count === 1) return `Apply failed with 1 conflict: conflict with ${first!.manager}: ${first!.paths[0]}`;
  const lines = conflictsByManager.flatMap(({ manager, paths }) => [
    `conflicts with ${manager}:`,
    ...paths.map((path) => `- ${path}`),
  ]);
  return `Apply failed with ${count} conflicts: ${lines.join('\n')}`;
}

function managerText({ manager, operation, apiVersion, subresource }: EntryHead): string {
  const through = subresource === '' ? '' : ` with subresource ${JSON.stringify(subresource)}`;
  const using = operation === 'Update' ? ` using ${apiVersion}` : '';
  return `${JSON.stringify(manager)}${through}${using}`;
}

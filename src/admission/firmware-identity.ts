/** Gives a machine its identity when it is created: a random uuid and a random serial. Updates are left to keep-identity.ts. */
import type { PatchOperation } from '#admission/review.ts';
import { isRecord } from '#kube/meta.ts';

/**
 * Returns the patch that fills in what `firmware` below `domain` lacks. `path` is the JSON pointer of the domain. Values
 * of a wrong type are left for the schema to refuse.
 */
export function fillFirmware(
  domain: unknown,
  path: string,
  fields: readonly ('uuid' | 'serial')[],
  newUuid: () => string,
): PatchOperation[] {
  if (!isRecord(domain)) return [];
  const { firmware } = domain;
  if (firmware === undefined || firmware === null) {
    const value = Object.fromEntries(fields.map((field) => [field, newUuid()]));
    return [{ op: 'add', path: `${path}/firmware`, value }];
  }
  if (!isRecord(firmware)) return [];
  return fields
    .filter((field) => isEmpty(firmware[field]))
    .map((field) => ({ op: 'add', path: `${path}/firmware/${field}`, value: newUuid() }));
}

const isEmpty = (value: unknown) => value === undefined || value === null || value === '';

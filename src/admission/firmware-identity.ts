/** Gives a new machine a random firmware UUID and serial. keep-identity.ts handles updates. */
import type { PatchOperation } from '#admission/review.ts';
import { isRecord } from '#kube/meta.ts';

/**
 * Returns the patch that fills in missing fields of `domain.firmware`. `path` is the JSON pointer of the domain. Values
 * of a wrong type are left unchanged: the schema refuses them.
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

/** Helpers for tests of kinds: run an object through defaults and validation, as the handlers do. */
import type { Resource } from '#engine/registry/resource.ts';
import { compileSchema } from '#engine/registry/structural/compile.ts';
import { apiVersionOf, type KubeObject, type ObjectMeta } from '#kube/meta.ts';

export const NOW = Date.parse('2026-01-01T12:00:00Z');
export const CREATED = '2026-01-01T11:55:00Z';
export const UID = '11111111-2222-3333-4444-555555555555';

export type Fields = Record<string, unknown> & { metadata?: ObjectMeta };

/** Builds an object as it is sent, with the fields that the server sets. */
export function anObject(resource: Resource, fields: Fields): KubeObject {
  // Through JSON, as from the wire: no value is `undefined`.
  const { metadata, ...rest } = JSON.parse(JSON.stringify(fields)) as Fields;
  const namespace = resource.namespaced ? { namespace: 'prod' } : {};
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: { name: 'one', ...namespace, uid: UID, creationTimestamp: CREATED, ...metadata },
    ...rest,
  };
}

/** Applies defaults and prepareForCreate. */
export function created(resource: Resource, fields: Fields): KubeObject {
  const object = anObject(resource, fields);
  compileSchema(resource.schema, { builtIn: true }).applyDefaults(object);
  resource.strategy.prepareForCreate?.(object);
  return object;
}

/** Validates a new object with schema and rules. Returns errors as `field: message`. */
export function newObjectErrors(resource: Resource, fields: Fields): string[] {
  const object = created(resource, fields);
  const errors = [
    ...compileSchema(resource.schema, { builtIn: true }).validate(object),
    ...(resource.strategy.validate?.(object) ?? []),
  ];
  return errors.map(({ field, message }) => `${field}: ${message}`);
}

/** Validates an update. Returns errors as `field: message`. */
export function changeErrors(resource: Resource, before: Fields, after: Fields): string[] {
  const old = created(resource, before);
  const { status } = before;
  if (status !== undefined) old['status'] = status;
  const next = anObject(resource, after);
  compileSchema(resource.schema, { builtIn: true }).applyDefaults(next);
  if (old['status'] !== undefined) next['status'] = structuredClone(old['status']);
  resource.strategy.prepareForUpdate?.(next, old);
  const errors = resource.strategy.validateUpdate?.(next, old) ?? [];
  return errors.map(({ field, message }) => `${field}: ${message}`);
}

/** Returns the cells of a wide table for a stored object, by column. */
export function cellsOf(resource: Resource, fields: Fields): Record<string, unknown> {
  const object = anObject(resource, fields);
  return Object.fromEntries(resource.columns.map((column) => [column.name, column.value(object, NOW)]));
}

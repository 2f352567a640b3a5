/**
 * The fields that managers can own on one path of the API, and the schemas for comparing them. No manager owns the
 * server's fields.
 */
import { difference, fieldSetOf, type FieldSet } from '#kube/field-sets/field-set.ts';
import { apiVersionOf, isRecord, type KubeObject } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import type { Served } from '#engine/registry/registry.ts';

export interface FieldScope {
  /** apiVersion of the request. */
  readonly apiVersion: string;
  readonly schema: Schema;
  readonly builtIn: boolean;
  /** Top-level fields that this path does not write. */
  readonly excluded: readonly string[];
  /** Returns the schema of any version of the kind, or undefined if it is no longer served. */
  schemaIn(apiVersion: string): Schema | undefined;
}

const NONE: readonly string[] = [];
const STATUS = ['status'];
const SPEC = ['spec'];
/** The status path of a custom kind does not write metadata, either. */
const SPEC_AND_METADATA = ['spec', 'metadata'];

export function fieldScope(served: Served, subresource: string): FieldScope {
  const { resource } = served;
  const apiVersion = apiVersionOf(resource);
  const { group, builtIn, status } = resource;
  return {
    apiVersion,
    schema: served.patchSchema,
    builtIn,
    excluded: excludedFields(subresource, builtIn, status),
    schemaIn: (wanted) => {
      if (wanted === apiVersion) return served.patchSchema;
      const slash = wanted.indexOf('/');
      return wanted.slice(0, Math.max(0, slash)) === group
        ? served.sibling(wanted.slice(slash + 1))?.patchSchema
        : undefined;
    },
  };
}

function excludedFields(subresource: string, builtIn: boolean, status: boolean): readonly string[] {
  switch (subresource) {
    case '':
      return status ? STATUS : NONE;
    case 'status':
      return builtIn ? SPEC : SPEC_AND_METADATA;
    case 'finalize':
      return STATUS;
    default:
      return NONE;
  }
}

const SERVER_METADATA: ReadonlySet<string> = new Set([
  'name',
  'namespace',
  'creationTimestamp',
  'selfLink',
  'uid',
  'generation',
  'managedFields',
  'resourceVersion',
]);

const STRIPPED: FieldSet = fieldSetOf(['f:metadata']);

/** Returns the part of an object that can be owned; shares everything below with it. */
export function ownablePart(object: KubeObject, { excluded }: FieldScope): Record<string, unknown> {
  const part: Record<string, unknown> = {};
  for (const field of Object.keys(object)) {
    if (field === 'apiVersion' || field === 'kind' || field === '__proto__' || excluded.includes(field)) continue;
    part[field] = field === 'metadata' ? ownableMetadata(object.metadata) : object[field];
  }
  return part;
}

function ownableMetadata(metadata: unknown): unknown {
  if (!isRecord(metadata)) return metadata;
  const part: Record<string, unknown> = {};
  for (const field of Object.keys(metadata)) {
    if (!SERVER_METADATA.has(field) && field !== '__proto__') part[field] = metadata[field];
  }
  return part;
}

/** No manager owns metadata as a whole. */
export function stripMetadata(fields: FieldSet): FieldSet {
  return difference(fields, STRIPPED);
}

/**
 * Returns the object that a new one is compared with: built-in kinds always have the outer structs, so no manager adds
 * them.
 */
export function emptyObject({ builtIn, schema, excluded }: FieldScope): Record<string, unknown> {
  const empty: Record<string, unknown> = {};
  if (!builtIn) return empty;
  for (const field of ['spec', 'status']) {
    if (schema.properties?.[field]?.properties !== undefined && !excluded.includes(field)) empty[field] = {};
  }
  return empty;
}

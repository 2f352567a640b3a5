/**
 * Which fields of an object managers can own on one path of the API, and the schemas by which they are told apart.
 * What the server decides alone belongs to nobody.
 */
import { difference, fieldSetOf, type FieldSet } from '#kube/field-sets/field-set.ts';
import { apiVersionOf, isRecord, type KubeObject } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import type { Served } from '#engine/registry/registry.ts';

export interface FieldScope {
  /** Of the request. */
  readonly apiVersion: string;
  readonly schema: Schema;
  readonly builtIn: boolean;
  /** Top-level fields that this path does not write. */
  readonly foreign: readonly string[];
  /** The schema of any version of the kind; undefined = it is not served any more. */
  schemaIn(apiVersion: string): Schema | undefined;
}

const NONE: readonly string[] = [];
const STATUS = ['status'];
const SPEC = ['spec'];
/** The status path of a custom kind keeps the metadata, too. */
const SPEC_AND_METADATA = ['spec', 'metadata'];

export function fieldScope(served: Served, subresource: string): FieldScope {
  const { resource } = served;
  const apiVersion = apiVersionOf(resource);
  const { group, builtIn, status } = resource;
  return {
    apiVersion,
    schema: served.patchSchema,
    builtIn,
    foreign: foreignFields(subresource, builtIn, status),
    schemaIn: (wanted) => {
      if (wanted === apiVersion) return served.patchSchema;
      const slash = wanted.indexOf('/');
      return wanted.slice(0, Math.max(0, slash)) === group
        ? served.sibling(wanted.slice(slash + 1))?.patchSchema
        : undefined;
    },
  };
}

function foreignFields(subresource: string, builtIn: boolean, status: boolean): readonly string[] {
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

/** The part of an object that can be owned; shares everything below with it. */
export function ownable(object: KubeObject, { foreign }: FieldScope): Record<string, unknown> {
  const part: Record<string, unknown> = {};
  for (const field of Object.keys(object)) {
    if (field === 'apiVersion' || field === 'kind' || field === '__proto__' || foreign.includes(field)) continue;
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

/** Nobody owns the metadata as a whole. */
export function stripped(fields: FieldSet): FieldSet {
  return difference(fields, STRIPPED);
}

/** What a new object is compared with: of built-in kinds the outer structs are always there, so that nobody adds them. */
export function emptyObject({ builtIn, schema, foreign }: FieldScope): Record<string, unknown> {
  const empty: Record<string, unknown> = {};
  if (!builtIn) return empty;
  for (const field of ['spec', 'status']) {
    if (schema.properties?.[field]?.properties !== undefined && !foreign.includes(field)) empty[field] = {};
  }
  return empty;
}

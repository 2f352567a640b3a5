/** Schemas that all kinds reference. They use only keywords that both OpenAPI v2 and v3 allow. */
import type { GroupVersionKind } from '#engine/registry/resource.ts';
import { DELETE_OPTIONS, LIST_META, OBJECT_META, PATCH, SCALE, STATUS } from '#engine/openapi/model-names.ts';
import type { Schema } from '#kube/schema.ts';

/** A schema in an OpenAPI document. */
export interface DocumentSchema extends Omit<Schema, 'properties' | 'items' | 'additionalProperties' | 'allOf'> {
  $ref?: string;
  properties?: Record<string, DocumentSchema>;
  items?: DocumentSchema;
  additionalProperties?: DocumentSchema | boolean;
  allOf?: DocumentSchema[];
  'x-kubernetes-group-version-kind'?: GroupVersionKind[];
}

/** Formats a reference to a model. OpenAPI v2 and v3 keep models at different paths. */
type RefTo = (model: string) => string;

const text: DocumentSchema = { type: 'string' };
const flag: DocumentSchema = { type: 'boolean' };
const int32: DocumentSchema = { type: 'integer', format: 'int32' };
const int64: DocumentSchema = { type: 'integer', format: 'int64' };
const texts: DocumentSchema = { type: 'array', items: text };

export const TYPE_META: Readonly<Record<string, DocumentSchema>> = {
  apiVersion: { ...text, description: 'API group and version of this representation of the object.' },
  kind: { ...text, description: 'Kind of the object, in CamelCase. Cannot be updated.' },
};

export const METADATA_DESCRIPTION = "Standard object's metadata.";

const listMeta: DocumentSchema = {
  type: 'object',
  properties: { continue: text, remainingItemCount: int64, resourceVersion: text, selfLink: text },
};

const statusDetails: DocumentSchema = {
  type: 'object',
  properties: {
    causes: {
      type: 'array',
      items: { type: 'object', properties: { field: text, message: text, reason: text } },
      'x-kubernetes-list-type': 'atomic',
    },
    group: text,
    kind: text,
    name: text,
    retryAfterSeconds: int32,
    uid: text,
  },
};

const deleteOptions: DocumentSchema = {
  type: 'object',
  properties: {
    ...TYPE_META,
    dryRun: { ...texts, 'x-kubernetes-list-type': 'atomic' },
    gracePeriodSeconds: int64,
    orphanDependents: flag,
    preconditions: { type: 'object', properties: { resourceVersion: text, uid: text } },
    propagationPolicy: text,
  },
};

const core = (kind: string): GroupVersionKind[] => [{ group: '', version: 'v1', kind }];

export function sharedSchemas(refTo: RefTo, { scale }: { scale: boolean }): Record<string, DocumentSchema> {
  const status: DocumentSchema = {
    type: 'object',
    properties: {
      ...TYPE_META,
      code: int32,
      details: statusDetails,
      message: text,
      metadata: { $ref: refTo(LIST_META) },
      reason: text,
      status: text,
    },
    'x-kubernetes-group-version-kind': core('Status'),
  };
  return {
    [DELETE_OPTIONS]: { ...deleteOptions, 'x-kubernetes-group-version-kind': core('DeleteOptions') },
    [LIST_META]: listMeta,
    [PATCH]: { type: 'object' },
    [STATUS]: status,
    ...(scale ? { [SCALE]: scaleSchema(refTo) } : {}),
  };
}

function scaleSchema(refTo: RefTo): DocumentSchema {
  return {
    type: 'object',
    properties: {
      ...TYPE_META,
      metadata: { $ref: refTo(OBJECT_META) },
      spec: { type: 'object', properties: { replicas: int32 } },
      status: { type: 'object', required: ['replicas'], properties: { replicas: int32, selector: text } },
    },
    'x-kubernetes-group-version-kind': [{ group: 'autoscaling', version: 'v1', kind: 'Scale' }],
  };
}

export function listSchema(
  { group, version, listKind }: { group: string; version: string; listKind: string },
  itemModel: string,
  refTo: RefTo,
): DocumentSchema {
  return {
    type: 'object',
    required: ['items'],
    properties: {
      ...TYPE_META,
      items: { type: 'array', items: { $ref: refTo(itemModel) } },
      metadata: { $ref: refTo(LIST_META) },
    },
    'x-kubernetes-group-version-kind': [{ group, version, kind: listKind }],
  };
}

/** Adds the fields apiVersion, kind and metadata of an embedded object. */
export function addEmbeddedMetadata(schema: DocumentSchema, metadataRef: string): DocumentSchema {
  return {
    ...schema,
    properties: { ...schema.properties, ...TYPE_META, metadata: { $ref: metadataRef } },
    required: [...new Set([...(schema.required ?? []), 'kind', 'apiVersion'])],
  };
}

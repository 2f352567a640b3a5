/** What every object has beside its own schema, as the published OpenAPI documents of Kubernetes have it. */
import type { Schema } from '#kube/schema.ts';

const string: Schema = { type: 'string' };
const boolean: Schema = { type: 'boolean' };
const integer: Schema = { type: 'integer' };
const time: Schema = { type: 'string', format: 'date-time' };
const stringMap: Schema = { type: 'object', additionalProperties: string };

const ownerReference: Schema = {
  type: 'object',
  properties: {
    apiVersion: string,
    kind: string,
    name: string,
    uid: string,
    controller: boolean,
    blockOwnerDeletion: boolean,
  },
};

const managedFieldsEntry: Schema = {
  type: 'object',
  properties: {
    manager: string,
    operation: string,
    apiVersion: string,
    time,
    fieldsType: string,
    fieldsV1: { type: 'object' },
    subresource: string,
  },
};

const objectMeta: Schema = {
  type: 'object',
  properties: {
    name: string,
    generateName: string,
    namespace: string,
    selfLink: string,
    uid: string,
    resourceVersion: string,
    generation: integer,
    creationTimestamp: time,
    deletionTimestamp: time,
    deletionGracePeriodSeconds: integer,
    labels: stringMap,
    annotations: stringMap,
    ownerReferences: { type: 'array', items: ownerReference },
    finalizers: { type: 'array', items: string },
    managedFields: { type: 'array', items: managedFieldsEntry },
  },
};

const namesOnly: Schema = { type: 'object', properties: { name: string, generateName: string } };

/** A whole object as a policy sees it. */
export function withObjectMeta(schema: Schema): Schema {
  return withMetadata(schema, objectMeta);
}

/** A whole object as the validation rules of a schema see it, which may look at its names only. */
export function withObjectNames(schema: Schema): Schema {
  const own = schema.properties?.['metadata']?.properties;
  return withMetadata(schema, own?.['name'] && own['generateName'] ? schema.properties!['metadata']! : namesOnly);
}

function withMetadata(schema: Schema, metadata: Schema): Schema {
  return {
    ...schema,
    type: 'object',
    properties: { ...schema.properties, apiVersion: string, kind: string, metadata },
  };
}

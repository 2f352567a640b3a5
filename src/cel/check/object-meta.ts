/**
 * The schema of the metadata that every object has in addition to its own schema, as in the published OpenAPI documents
 * of Kubernetes.
 */
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

/** Returns the schema of a whole object as a policy sees it. */
export function withObjectMeta(schema: Schema): Schema {
  return withMetadata(schema, objectMeta);
}

/**
 * Returns the schema of a whole object as its own validation rules see it. They can read only its name and
 * generateName.
 */
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

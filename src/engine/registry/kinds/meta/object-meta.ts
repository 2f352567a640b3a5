/** The metadata of objects and of templates. registry/metadata.ts validates it. */
import { apiType, asTypeOf, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { anything, bool, int64, list, map, obj, str, time } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

const ownerReference = apiType(
  'meta.v1.OwnerReference',
  { description: 'A reference to an object that owns this object.', atomic: true },
  {
    apiVersion: required(5, str(), 'API version of the owner.'),
    kind: required(1, str(), 'Kind of the owner.'),
    name: required(3, str(), 'Name of the owner.'),
    uid: required(4, str(), 'UID of the owner.'),
    controller: pointer(6, bool(), 'Whether the owner is the managing controller. At most one owner is.'),
    blockOwnerDeletion: pointer(
      7,
      bool(),
      'Whether a foreground deletion of the owner waits until this object is deleted.',
    ),
  },
);

const managedFieldsEntry = apiType('meta.v1.ManagedFieldsEntry', 'The fields that one manager manages.', {
  manager: optional(1, str(), 'Name of the manager of the fields.'),
  operation: optional(2, str(), 'Operation that created the entry: Apply or Update.'),
  apiVersion: optional(3, str(), 'API version of the kind that the field set applies to.'),
  time: pointer(4, time(), 'Last time the entry changed.'),
  fieldsType: optional(6, str(), 'Format of the field set: FieldsV1.'),
  fieldsV1: pointer(7, { ...anything(), type: 'object' }, 'Set of the managed fields.', { message: 'FieldsV1' }),
  subresource: optional(8, str(), 'Subresource through which the fields were set.'),
});

export const metadataSchema: Schema = apiType('meta.v1.ObjectMeta', "Standard object's metadata.", {
  name: optional(1, str(), 'Name of the object. Must be unique within a namespace. Cannot be updated.'),
  generateName: optional(2, str(), 'Prefix from which the server generates a unique name if name is not set.'),
  namespace: optional(3, str(), 'Namespace within which the name must be unique. Empty for cluster-scoped kinds.'),
  selfLink: optional(4, str(), 'Deprecated: not set by the system.'),
  uid: optional(5, str(), 'Identifier that is unique in time and space. Set by the server.'),
  resourceVersion: optional(6, str(), 'Opaque internal version of the object, for optimistic concurrency and watches.'),
  generation: optional(7, int64(), 'Sequence number of the desired state. Set by the server.'),
  creationTimestamp: optional(8, time(), 'Time when the object was created. Set by the server.'),
  deletionTimestamp: pointer(
    9,
    time(),
    'Time when the object will be deleted. Set by the server on a graceful deletion.',
  ),
  deletionGracePeriodSeconds: pointer(
    10,
    int64(),
    'Seconds that the object has to terminate gracefully. Set by the server.',
  ),
  labels: optional(11, map(str()), 'Keys and values to organize and select objects by.'),
  annotations: optional(12, map(str()), 'Keys and values that tools store with the object.'),
  ownerReferences: optional(
    13,
    list(ownerReference, { mergeKey: 'uid' }),
    'Objects that this object depends on. It is garbage collected when all of them are deleted.',
  ),
  finalizers: optional(
    14,
    list(str(), { set: true, merge: true }),
    'Finalizers that must be empty before the object is deleted. Each one names the component that removes it.',
  ),
  managedFields: optional(
    17,
    list(managedFieldsEntry, { atomic: true }),
    'Which manager manages which fields. Set by the server.',
  ),
});

/** The metadata of a template. Lenient, because the created object is validated. */
export const templateMeta = asTypeOf(
  metadataSchema,
  obj(
    {
      name: str(),
      generateName: str(),
      namespace: str(),
      labels: map(str()),
      annotations: map(str()),
      finalizers: list(str(), { set: true, merge: true }),
    },
    { open: true },
  ),
);

/** The schemas of object references. */
import { apiType, inlined, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { str } from '#kube/schema-dsl.ts';

export const objectReference = apiType(
  'core.v1.ObjectReference',
  { description: 'A reference to an object.', atomic: true },
  {
    kind: optional(1, str(), 'Kind of the object.'),
    namespace: optional(2, str(), 'Namespace of the object.'),
    name: optional(3, str(), 'Name of the object.'),
    uid: optional(4, str(), 'UID of the object.'),
    apiVersion: optional(5, str(), 'API version of the object.'),
    resourceVersion: optional(6, str(), 'Resource version of the object.'),
    fieldPath: optional(7, str(), 'Path of the part of the object that is referred to.'),
  },
);

export const localObjectReference = apiType(
  'core.v1.LocalObjectReference',
  { description: 'A reference to an object in the same namespace.', atomic: true },
  {
    name: optional(1, str({ default: '' }), 'Name of the object.'),
  },
);

/** Returns the field of types that embed a LocalObjectReference. */
export const inlinedReference = (kind: 'ConfigMap' | 'Secret') =>
  inlined(1, 'core.v1.LocalObjectReference', {
    name: optional(1, str({ default: '' }), `Name of the ${kind}.`),
  });

export const typedLocalObjectReference = apiType(
  'core.v1.TypedLocalObjectReference',
  { description: 'A reference to an object of any kind in the same namespace.', atomic: true },
  {
    apiGroup: pointer(1, str(), 'API group of the object. Empty means the core group.', { omitEmpty: false }),
    kind: required(2, str(), 'Kind of the object.'),
    name: required(3, str(), 'Name of the object.'),
  },
);

export const typedObjectReference = apiType('core.v1.TypedObjectReference', 'A reference to an object of any kind.', {
  apiGroup: pointer(1, str(), 'API group of the object. Empty means the core group.', { omitEmpty: false }),
  kind: required(2, str(), 'Kind of the object.'),
  name: required(3, str(), 'Name of the object.'),
  namespace: pointer(4, str(), 'Namespace of the object. Defaults to the same namespace.'),
});

export const secretReference = apiType(
  'core.v1.SecretReference',
  { description: 'A reference to a Secret in any namespace.', atomic: true },
  {
    name: optional(1, str(), 'Name of the Secret.'),
    namespace: optional(2, str(), 'Namespace of the Secret.'),
  },
);

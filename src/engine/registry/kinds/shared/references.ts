/** The schemas of object references. */
import { obj, str } from '#kube/schema-dsl.ts';

export const objectReference = obj(
  {
    apiVersion: str(),
    fieldPath: str(),
    kind: str(),
    name: str(),
    namespace: str(),
    resourceVersion: str(),
    uid: str(),
  },
  { atomic: true },
);

export const localObjectReference = obj(
  {
    name: str({ default: '' }),
  },
  { atomic: true },
);

export const typedLocalObjectReference = obj(
  {
    apiGroup: str(),
    kind: str(),
    name: str(),
  },
  { required: ['kind', 'name'], atomic: true },
);

export const typedObjectReference = obj(
  {
    apiGroup: str(),
    kind: str(),
    name: str(),
    namespace: str(),
  },
  { required: ['kind', 'name'] },
);

export const secretReference = obj(
  {
    name: str(),
    namespace: str(),
  },
  { atomic: true },
);

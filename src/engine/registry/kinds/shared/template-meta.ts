/** The metadata of a template. Lenient, because the created object is validated. */
import { list, map, obj, str } from '#kube/schema-dsl.ts';

export const templateMeta = obj(
  {
    name: str(),
    generateName: str(),
    namespace: str(),
    labels: map(str()),
    annotations: map(str()),
    finalizers: list(str(), { set: true, merge: true }),
  },
  { open: true },
);

/** The metadata of a template: what the made object starts with. Lenient, for the made object is checked itself. */
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

/** The schemas of environment variables and their sources. */
import { bool, obj, quantity, str } from '#kube/schema-dsl.ts';

/** A key of a ConfigMap or Secret. */
const keySelector = obj(
  {
    key: str(),
    name: str({ default: '' }),
    optional: bool(),
  },
  { required: ['key'], atomic: true },
);

export const objectFieldSelector = obj(
  {
    apiVersion: str({ default: 'v1' }),
    fieldPath: str(),
  },
  { required: ['fieldPath'], atomic: true },
);

export const resourceFieldSelector = obj(
  {
    containerName: str(),
    divisor: quantity(),
    resource: str(),
  },
  { required: ['resource'], atomic: true },
);

const envVarSource = obj({
  configMapKeyRef: keySelector,
  fieldRef: objectFieldSelector,
  resourceFieldRef: resourceFieldSelector,
  secretKeyRef: keySelector,
});

export const envVar = obj(
  {
    name: str(),
    value: str(),
    valueFrom: envVarSource,
  },
  { required: ['name'] },
);

/** All keys of a ConfigMap or Secret. */
const envSource = obj({
  name: str({ default: '' }),
  optional: bool(),
});

export const envFromSource = obj({
  configMapRef: envSource,
  prefix: str(),
  secretRef: envSource,
});

/** Where the environment of a container comes from. */
import { bool, obj, quantity, str } from '#kube/schema-dsl.ts';

export const configMapKeySelector = obj(
  {
    key: str(),
    name: str({ default: '' }),
    optional: bool(),
  },
  { required: ['key'], atomic: true },
);

export const secretKeySelector = obj(
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

export const fileKeySelector = obj(
  {
    key: str(),
    optional: bool(),
    path: str(),
    volumeName: str(),
  },
  { required: ['volumeName', 'path', 'key'], atomic: true },
);

export const envVarSource = obj({
  configMapKeyRef: configMapKeySelector,
  fieldRef: objectFieldSelector,
  fileKeyRef: fileKeySelector,
  resourceFieldRef: resourceFieldSelector,
  secretKeyRef: secretKeySelector,
});

export const envVar = obj(
  {
    name: str(),
    value: str(),
    valueFrom: envVarSource,
  },
  { required: ['name'] },
);

export const configMapEnvSource = obj({
  name: str({ default: '' }),
  optional: bool(),
});

export const secretEnvSource = obj({
  name: str({ default: '' }),
  optional: bool(),
});

export const envFromSource = obj({
  configMapRef: configMapEnvSource,
  prefix: str(),
  secretRef: secretEnvSource,
});

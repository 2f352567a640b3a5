/** The schemas of environment variables and their sources. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { inlinedReference } from '#engine/registry/kinds/core/references.ts';
import { bool, quantity, str } from '#kube/schema-dsl.ts';

/** A key of a ConfigMap or Secret. */
const keySelector = (kind: 'ConfigMap' | 'Secret') =>
  apiType(
    `core.v1.${kind}KeySelector`,
    { description: `Selects a key of a ${kind}.`, atomic: true },
    {
      ...inlinedReference(kind),
      key: required(2, str(), 'Key to select.'),
      optional: pointer(3, bool(), 'Whether the object or its key may be missing.'),
    },
  );

export const objectFieldSelector = apiType(
  'core.v1.ObjectFieldSelector',
  { description: 'Selects a field of an object.', atomic: true },
  {
    apiVersion: optional(1, str({ default: 'v1' }), 'API version that fieldPath refers to. Defaults to v1.'),
    fieldPath: required(2, str(), 'Path of the field.'),
  },
);

export const resourceFieldSelector = apiType(
  'core.v1.ResourceFieldSelector',
  { description: 'Selects a compute resource of a container.', atomic: true },
  {
    containerName: optional(1, str(), 'Name of the container. Required for volumes.'),
    resource: required(2, str(), 'Resource to select, such as limits.cpu or requests.memory.'),
    divisor: optional(3, quantity(), 'Unit of the value. Defaults to 1.'),
  },
);

const envVarSource = apiType('core.v1.EnvVarSource', 'A source of the value of an environment variable.', {
  fieldRef: pointer(1, objectFieldSelector, 'Selects a field of the pod.'),
  resourceFieldRef: pointer(2, resourceFieldSelector, 'Selects a resource of a container.'),
  configMapKeyRef: pointer(3, keySelector('ConfigMap'), 'Selects a key of a ConfigMap.'),
  secretKeyRef: pointer(4, keySelector('Secret'), 'Selects a key of a Secret.'),
});

export const envVar = apiType('core.v1.EnvVar', 'An environment variable of a container.', {
  name: required(1, str(), 'Name of the variable.'),
  value: optional(2, str(), 'Value of the variable. $(NAME) expands to another variable.'),
  valueFrom: pointer(3, envVarSource, 'Source of the value. Cannot be used if value is not empty.'),
});

/** All keys of a ConfigMap or Secret. */
const envSource = (kind: 'ConfigMap' | 'Secret') =>
  apiType(`core.v1.${kind}EnvSource`, `A ${kind} whose keys become environment variables.`, {
    ...inlinedReference(kind),
    optional: pointer(2, bool(), 'Whether the object may be missing.'),
  });

export const envFromSource = apiType(
  'core.v1.EnvFromSource',
  'A ConfigMap or Secret whose keys become environment variables.',
  {
    prefix: optional(1, str(), 'Prefix of each variable name.'),
    configMapRef: pointer(2, envSource('ConfigMap'), 'ConfigMap to read.'),
    secretRef: pointer(3, envSource('Secret'), 'Secret to read.'),
  },
);

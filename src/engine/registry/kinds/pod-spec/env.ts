/** Environment variables and their sources: types and rules. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { inlinedReference } from '#engine/registry/kinds/core/references.ts';
import { bool, type Infer, quantity, str } from '#kube/schema-dsl.ts';
import { checkConfigKey, checkName, checkRequiredName } from '#engine/registry/kinds/shared/formats.ts';
import { type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';

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

type Env = Infer<typeof envVar>;
type EnvFrom = Infer<typeof envFromSource>;
type KeySelector = NonNullable<NonNullable<Env['valueFrom']>['secretKeyRef']>;

const NAME = /^[\x20-\x3c\x3e-\x7e]+$/;
const NAME_TEXT = "a valid environment variable name must consist only of printable ASCII characters other than '='";
const TOO_MANY = 'may not have more than one field specified at a time';
const SOURCES = ['fieldRef', 'resourceFieldRef', 'configMapKeyRef', 'secretKeyRef'] as const;

function checkVariableName(field: string, name: string): FieldError[] {
  return NAME.test(name) ? [] : [invalidValue(field, name, NAME_TEXT)];
}

export function checkEnv(field: string, { name, value, valueFrom }: Env): FieldError[] {
  const errors = name === '' ? [requiredValue(`${field}.name`)] : checkVariableName(`${field}.name`, name);
  if (valueFrom === undefined) return errors;
  const source = `${field}.valueFrom`;
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef } = valueFrom;
  if (fieldRef?.fieldPath === '') errors.push(requiredValue(`${source}.fieldRef.fieldPath`));
  if (resourceFieldRef?.resource === '') errors.push(requiredValue(`${source}.resourceFieldRef.resource`));
  errors.push(
    ...checkKeySelector(`${source}.configMapKeyRef`, configMapKeyRef),
    ...checkKeySelector(`${source}.secretKeyRef`, secretKeyRef),
  );
  const set = SOURCES.filter((key) => valueFrom[key] !== undefined).length;
  if (set === 0) {
    const text = 'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`';
    errors.push(invalidValue(source, '', text));
  } else if (value) {
    errors.push(invalidValue(source, '', 'may not be specified when `value` is not empty'));
  } else if (set > 1) {
    errors.push(invalidValue(source, '', TOO_MANY));
  }
  return errors;
}

function checkKeySelector(field: string, selector: KeySelector | undefined): FieldError[] {
  if (selector === undefined) return [];
  const { name = '', key } = selector;
  return [
    ...checkName(`${field}.name`, name, 'subdomain'),
    ...(key === '' ? [requiredValue(`${field}.key`)] : checkConfigKey(`${field}.key`, key)),
  ];
}

/** Errors about the number of sources refer to the list, as in Kubernetes. */
export function checkEnvFrom(field: string, i: number, { prefix, configMapRef, secretRef }: EnvFrom): FieldError[] {
  const errors = prefix ? checkVariableName(`${field}[${i}].prefix`, prefix) : [];
  for (const [source, ref] of Object.entries({ configMapRef, secretRef })) {
    if (ref !== undefined) errors.push(...checkRequiredName(`${field}[${i}].${source}.name`, ref.name, 'subdomain'));
  }
  if (configMapRef === undefined && secretRef === undefined) {
    errors.push(invalidValue(field, '', 'must specify one of: `configMapRef` or `secretRef`'));
  } else if (configMapRef !== undefined && secretRef !== undefined) {
    errors.push(invalidValue(field, '', TOO_MANY));
  }
  return errors;
}

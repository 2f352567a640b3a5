/** Validates the environment of a container. */
import type { Container } from '#engine/registry/kinds/pod-spec/container.ts';
import { checkConfigKey, checkName, checkRequiredName } from '#engine/registry/kinds/shared/formats.ts';
import { type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';

type Env = NonNullable<Container['env']>[number];
type EnvFrom = NonNullable<Container['envFrom']>[number];
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

/** Checks of single values that several kinds share, as field errors with Kubernetes' messages. */
import { duplicateValue, type FieldError, forbiddenField, invalidValue, requiredValue } from '#kube/field-error.ts';
import { sameValue } from '#engine/registry/kinds/shared/reading.ts';
import { labelKeyErrors, labelValueErrors, nameErrors, type NameRule, qualifiedNameErrors } from '#kube/names.ts';

const at = (field: string, value: unknown, texts: readonly string[]): FieldError[] =>
  texts.map((text) => invalidValue(field, value, text));

export function checkName(field: string, value: string, rule: NameRule): FieldError[] {
  return at(field, value, nameErrors(rule, value));
}

/** Checks a name that must not be missing or empty. */
export function checkRequiredName(field: string, value: string | undefined, rule: NameRule): FieldError[] {
  return value === undefined || value === '' ? [requiredValue(field)] : checkName(field, value, rule);
}

export function checkQualifiedName(field: string, value: string): FieldError[] {
  return at(field, value, qualifiedNameErrors(value));
}

export function checkLabelKey(field: string, key: string): FieldError[] {
  return at(field, key, labelKeyErrors(key));
}

export function checkLabelValue(field: string, value: string): FieldError[] {
  return at(field, value, labelValueErrors(value));
}

/** Checks labels or a node selector. Errors refer to the map itself. */
export function checkLabelEntries(field: string, labels: Readonly<Record<string, string>> | undefined): FieldError[] {
  return Object.entries(labels ?? {}).flatMap(([key, value]) => [
    ...checkLabelKey(field, key),
    ...checkLabelValue(field, value),
  ]);
}

const CONFIG_KEY = /^[-._a-zA-Z0-9]+$/;
const CONFIG_KEY_TEXT =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const CONFIG_KEY_MAX = 253;
/** Limit for all values of a ConfigMap or Secret together. */
export const MAX_DATA_BYTES = 1_048_576;

/** Checks a key, which becomes a file name in a volume and must not leave its directory. */
export function checkConfigKey(field: string, key: string): FieldError[] {
  const errors: FieldError[] = [];
  if (key.length > CONFIG_KEY_MAX) {
    errors.push(invalidValue(field, key, `must be no more than ${CONFIG_KEY_MAX} characters`));
  }
  if (!CONFIG_KEY.test(key)) errors.push(invalidValue(field, key, CONFIG_KEY_TEXT));
  if (key === '.' || key === '..') errors.push(invalidValue(field, key, `must not be '${key}'`));
  else if (key.startsWith('..')) errors.push(invalidValue(field, key, "must not start with '..'"));
  return errors;
}

export const PORT_TEXT = 'must be between 1 and 65535, inclusive';

export function checkPort(field: string, port: number): FieldError[] {
  return port >= 1 && port <= 65_535 ? [] : [invalidValue(field, port, PORT_TEXT)];
}

const PORT_NAME_MAX = 15;

function portNameErrors(name: string): string[] {
  const errors: string[] = [];
  if (name.length > PORT_NAME_MAX) errors.push(`must be no more than ${PORT_NAME_MAX} characters`);
  if (!/^[-a-z0-9]+$/.test(name)) {
    errors.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)');
  }
  if (!/[a-z]/.test(name)) errors.push('must contain at least one letter (a-z)');
  if (name.includes('--')) errors.push('must not contain consecutive hyphens');
  if (name.startsWith('-') || name.endsWith('-')) errors.push('must not begin or end with a hyphen');
  return errors;
}

export function checkPortName(field: string, name: string): FieldError[] {
  return at(field, name, portNameErrors(name));
}

/** Checks a port number or name. */
export function checkPortOrName(field: string, port: number | string): FieldError[] {
  return typeof port === 'number' ? checkPort(field, port) : checkPortName(field, port);
}

export const NOT_NEGATIVE = 'must be greater than or equal to 0';
export const INT32_MAX = 2_147_483_647;

export function checkNotNegative(field: string, value: number | undefined): FieldError[] {
  return value === undefined || value >= 0 ? [] : [invalidValue(field, value, NOT_NEGATIVE)];
}

export function checkImmutableValue(field: string, value: unknown, old: unknown): FieldError[] {
  return sameValue(value, old) ? [] : [invalidValue(field, value, 'field is immutable')];
}

/** Reports all but the first of equal names. */
export function checkUnique(names: readonly (readonly [field: string, name: string])[]): FieldError[] {
  const seen = new Set<string>();
  const errors: FieldError[] = [];
  for (const [field, name] of names) {
    if (seen.has(name)) errors.push(duplicateValue(field, name));
    seen.add(name);
  }
  return errors;
}

/** Checks that exactly one source is set; each further one is an error of its own. */
export function checkOneSource(field: string, object: object, sources: readonly string[], what: string): FieldError[] {
  const set = sources.filter((source) => (object as Record<string, unknown>)[source] !== undefined);
  if (set.length === 0) return [requiredValue(field, `must specify a ${what} type`)];
  return set.slice(1).map((source) => forbiddenField(`${field}.${source}`, `may not specify more than 1 ${what} type`));
}

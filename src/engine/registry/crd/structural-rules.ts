/**
 * Checks that a schema is structural: every field has a type, and anyOf, allOf, oneOf and not only restrict values that
 * are described outside of them. Kubernetes' messages. The shape was checked before.
 */
import { RE2JS } from 're2js';
import { ruleBranches, structuralBranches } from '#engine/registry/crd/schema-tree.ts';
import { deepEqual } from '#kube/deep.ts';
import { type FieldError, forbiddenField, invalidValue, requiredValue } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { errorMessage } from '#lib/error-message.ts';

export function checkStructural(schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  checkStructure(schema, 'root', path, errors);
  for (const branch of ruleBranches(schema, path)) {
    checkCompleteness(branch.schema, schema, { rules: branch.path, structure: path }, errors);
  }
  const text = ({ field, message }: FieldError) => `${field}: ${message}`;
  return errors.sort((a, b) => (text(a) < text(b) ? -1 : 1));
}

type Level = 'root' | 'item' | 'field';

const TYPE_MISSING: Record<Level, string> = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
};

function checkStructure(schema: Schema, level: Level, path: string, errors: FieldError[]): void {
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true;
  if (schema.type === 'array' && schema.items === undefined) {
    errors.push(requiredValue(`${path}.items`, 'must be specified'));
  }
  for (const branch of structuralBranches(schema, path)) {
    checkStructure(branch.schema, branch.schema === schema.items ? 'item' : 'field', branch.path, errors);
  }
  if (schema.additionalProperties !== undefined) {
    if (level === 'root') {
      errors.push(forbiddenField(`${path}.additionalProperties`, 'must not be used at the root'));
    }
    if (isEmbedded) {
      const detail = 'must not be used if x-kubernetes-embedded-resource is set';
      errors.push(forbiddenField(`${path}.additionalProperties`, detail));
    }
  }
  checkExtensions(schema, path, errors);
  checkNodeRules(schema, path, true, errors);
  checkType(schema, level, path, errors);
  if (level === 'root' || isEmbedded) checkObjectFields(schema, level, path, errors);
}

function checkExtensions(schema: Schema, path: string, errors: FieldError[]): void {
  if (schema['x-kubernetes-int-or-string'] === true) {
    for (const keyword of ['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource'] as const) {
      if (schema[keyword] !== true) continue;
      errors.push(invalidValue(`${path}.${keyword}`, true, 'must be false if x-kubernetes-int-or-string is true'));
    }
  }
  const preserves = schema['x-kubernetes-preserve-unknown-fields'] === true;
  if (schema['x-kubernetes-embedded-resource'] === true && !preserves && isEmpty(schema.properties)) {
    const detail =
      'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields';
    errors.push(requiredValue(`${path}.properties`, detail));
  }
}

const isEmpty = (fields: object | undefined) => fields === undefined || Object.keys(fields).length === 0;

function checkType(schema: Schema, level: Level, path: string, errors: FieldError[]): void {
  const type: string = schema.type ?? '';
  if (schema['x-kubernetes-embedded-resource'] === true && type !== 'object') {
    const detail = 'must be object if x-kubernetes-embedded-resource is true';
    errors.push(type === '' ? requiredValue(`${path}.type`, detail) : invalidValue(`${path}.type`, type, detail));
  } else if (type === '' && !mayLackType(schema)) {
    errors.push(requiredValue(`${path}.type`, TYPE_MISSING[level]));
  }
  if (level === 'root' && type !== '' && type !== 'object') {
    errors.push(invalidValue(`${path}.type`, type, 'must be object at the root'));
  }
}

function mayLackType(schema: Schema): boolean {
  return schema['x-kubernetes-int-or-string'] === true || schema['x-kubernetes-preserve-unknown-fields'] === true;
}

/** apiVersion, kind and metadata of an object are predefined; a schema may only restrict the name. */
function checkObjectFields({ properties = {} }: Schema, level: Level, path: string, errors: FieldError[]): void {
  for (const name of ['kind', 'apiVersion']) {
    const property = properties[name];
    if (property === undefined || property.type === 'string') continue;
    errors.push(invalidValue(`${path}.properties[${name}].type`, property.type ?? '', 'must be string'));
  }
  const { metadata } = properties;
  if (metadata === undefined) return;
  const at = `${path}.properties[metadata]`;
  if (metadata.type !== 'object') errors.push(invalidValue(`${at}.type`, metadata.type ?? '', 'must be object'));
  if (level !== 'root') return;
  const { type: _type, default: _default, properties: fields = {}, ...rest } = metadata;
  const narrowsOnly = Object.keys(fields).every((name) => name === 'name' || name === 'generateName');
  if (!narrowsOnly || !isEmpty(rest)) {
    const detail = 'must not specify anything other than name and generateName, but metadata is implicitly specified';
    errors.push(forbiddenField(at, detail));
  }
}

const INT_OR_STRING = [{ type: 'integer' }, { type: 'string' }];

/** Checks the pattern of a node, and that anyOf, allOf, oneOf and not contain no structure. */
function checkNodeRules(schema: Schema, path: string, allowsIntOrString: boolean, errors: FieldError[]): void {
  if (schema.pattern !== undefined && schema.pattern !== '') checkPattern(schema.pattern, path, errors);
  // controller-gen also writes int-or-string this way, also as the first element of allOf; Kubernetes accepts it.
  const { anyOf, ...rest } = schema;
  const others = allowsIntOrString && deepEqual(anyOf, INT_OR_STRING) ? rest : schema;
  for (const branch of ruleBranches(others, path)) {
    const isFirst = allowsIntOrString && branch.schema === schema.allOf?.[0] && branch.path.endsWith('.allOf[0]');
    checkNested(branch.schema, branch.path, isFirst, errors);
  }
}

/** The exception within allOf applies to anyOf only, and not to deeper levels. */
function checkNestedRules(schema: Schema, path: string, allowsIntOrString: boolean, errors: FieldError[]): void {
  if (!allowsIntOrString || !deepEqual(schema.anyOf, INT_OR_STRING)) return checkNodeRules(schema, path, false, errors);
  const { anyOf: _, ...rest } = schema;
  checkNodeRules(rest, path, false, errors);
}

const MUST_BE: readonly (readonly [keyof Schema, string])[] = [
  ['type', 'must be empty to be structural'],
  ['additionalProperties', 'must be undefined to be structural'],
  ['default', 'must be undefined to be structural'],
  ['title', 'must be empty to be structural'],
  ['description', 'must be empty to be structural'],
  ['nullable', 'must be false to be structural'],
  ['x-kubernetes-preserve-unknown-fields', 'must be false to be structural'],
  ['x-kubernetes-embedded-resource', 'must be false to be structural'],
  ['x-kubernetes-int-or-string', 'must be false to be structural'],
  ['x-kubernetes-list-map-keys', 'must be empty to be structural'],
  ['x-kubernetes-list-type', 'must be undefined to be structural'],
  ['x-kubernetes-map-type', 'must be undefined to be structural'],
  ['x-kubernetes-validations', 'must be empty to be structural'],
];

function checkNested(schema: Schema, path: string, allowsIntOrString: boolean, errors: FieldError[]): void {
  checkNestedRules(schema, path, allowsIntOrString, errors);
  for (const branch of structuralBranches(schema, path)) {
    if (branch.schema !== schema.additionalProperties) checkNested(branch.schema, branch.path, false, errors);
  }
  for (const [keyword, detail] of MUST_BE) {
    const value = schema[keyword];
    if (value === undefined || value === '' || value === false) continue;
    if (Array.isArray(value) && value.length === 0) continue;
    errors.push(forbiddenField(`${path}.${keyword}`, detail));
  }
  if (schema.properties !== undefined && Object.hasOwn(schema.properties, 'metadata')) {
    errors.push(forbiddenField(`${path}.properties[metadata]`, 'must not be specified in a nested context'));
  }
}

function checkPattern(pattern: string, path: string, errors: FieldError[]): void {
  try {
    RE2JS.compile(pattern);
  } catch (error) {
    const why = errorMessage(error);
    const detail = `must be a valid regular expression, but isn't: ${why}`;
    errors.push(invalidValue(`${path}.pattern`, pattern, detail));
  }
}

/** Checks that every field in a rule is also described outside of the rules. */
function checkCompleteness(
  rules: Schema,
  structure: Schema | undefined,
  at: { readonly rules: string; readonly structure: string },
  errors: FieldError[],
): void {
  if (structure === undefined) {
    errors.push(requiredValue(at.structure, `because it is defined in ${at.rules}`));
    return;
  }
  for (const branch of ruleBranches(rules, at.rules)) {
    checkCompleteness(branch.schema, structure, { rules: branch.path, structure: at.structure }, errors);
  }
  for (const branch of structuralBranches(rules, at.rules)) {
    if (branch.schema === rules.additionalProperties) continue;
    const inside = { rules: branch.path, structure: at.structure + branch.path.slice(at.rules.length) };
    const name = Object.keys(rules.properties ?? {}).find((key) => rules.properties?.[key] === branch.schema);
    const described = name === undefined ? structure.items : own(structure.properties, name);
    checkCompleteness(branch.schema, described, inside, errors);
  }
}

function own(properties: Record<string, Schema> | undefined, name: string): Schema | undefined {
  return isRecord(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
}

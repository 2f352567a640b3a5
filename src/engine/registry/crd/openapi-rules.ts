/**
 * Checks the OpenAPI keywords that Kubernetes allows, and the combinations of its extensions. The shape was checked
 * before.
 */
import { allBranches, type Branch } from '#engine/registry/crd/schema-tree.ts';
import { OBJECT_FIELDS } from '#engine/registry/structural/keywords.ts';
import { fieldAt, FieldPathError } from '#engine/registry/structural/rules/field-path.ts';
import { type FieldError, forbiddenField, invalidValue, requiredValue, unsupportedValue } from '#kube/field-error.ts';
import type { Schema, ValidationRule } from '#kube/schema.ts';

const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string'];
const LIST_TYPES = ['atomic', 'set', 'map'];
const MAP_TYPES = ['atomic', 'granular'];
const REASONS = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'];
const UNSUPPORTED_KEYWORDS = ['id', 'additionalItems', 'patternProperties', 'definitions', 'dependencies', '$ref'];

/** The context that a nested schema inherits. */
interface Context {
  /** The reason why defaults are not allowed here; undefined if they are. */
  readonly noDefaults?: string;
  /** True if the value is the metadata, kind or apiVersion of an object or of an embedded object. */
  readonly ofResource?: boolean;
}

export function checkOpenApi(schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (schema.nullable === true) errors.push(forbiddenField(`${path}.nullable`, 'nullable cannot be true at the root'));
  checkTree(schema, path, {}, true, errors);
  return errors;
}

function checkTree(schema: Schema, path: string, context: Context, isRoot: boolean, errors: FieldError[]): void {
  checkNode(schema, path, context, errors);
  for (const branch of allBranches(schema, path)) {
    checkTree(branch.schema, branch.path, descend(schema, branch, context, isRoot), false, errors);
  }
}

function descend(schema: Schema, branch: Branch, context: Context, isRoot: boolean): Context {
  if (branch.schema === schema.additionalProperties) {
    if (context.ofResource !== true) return context;
    return { ofResource: true, noDefaults: 'inside additionalProperties applying to object metadata' };
  }
  const name = /\.properties\[(\w+)\]$/.exec(branch.path.slice(branch.path.lastIndexOf('.properties[')))?.[1] ?? '';
  const isProperty = schema.properties !== undefined && schema.properties[name] === branch.schema;
  if (!isProperty || !OBJECT_FIELDS.has(name)) return context;
  if (isRoot) return { ofResource: true, noDefaults: `in top-level ${name}` };
  return schema['x-kubernetes-embedded-resource'] === true ? { ...context, ofResource: true } : context;
}

function checkNode(schema: Schema, path: string, { noDefaults, ofResource }: Context, errors: FieldError[]): void {
  const type: string = schema.type ?? '';
  if (type !== '' && !TYPES.includes(type)) errors.push(unsupportedValue(`${path}.type`, type, TYPES));
  if (schema.default !== undefined && schema.default !== null && noDefaults !== undefined) {
    errors.push(forbiddenField(`${path}.default`, `must not be set ${noDefaults}`));
  }
  for (const keyword of UNSUPPORTED_KEYWORDS) {
    if (!Object.hasOwn(schema, keyword)) continue;
    errors.push(forbiddenField(`${path}.${keyword}`, `${keyword} is not supported`));
  }
  if (type === 'null') {
    errors.push(forbiddenField(`${path}.type`, 'type cannot be set to null, use nullable as an alternative'));
  }
  if (ofResource === true && schema['x-kubernetes-embedded-resource'] === true) {
    errors.push(forbiddenField(`${path}.x-kubernetes-embedded-resource`, 'must not be used inside of resource meta'));
  }
  if (schema.uniqueItems === true) {
    const detail = 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic';
    errors.push(forbiddenField(`${path}.uniqueItems`, detail));
  }
  const { additionalProperties, properties = {} } = schema;
  if (additionalProperties !== undefined && additionalProperties !== true && Object.keys(properties).length > 0) {
    const detail = 'additionalProperties and properties are mutual exclusive';
    errors.push(forbiddenField(`${path}.additionalProperties`, detail));
  }
  if (schema['x-kubernetes-preserve-unknown-fields'] === false) {
    errors.push(invalidValue(`${path}.x-kubernetes-preserve-unknown-fields`, false, 'must be true or undefined'));
  }
  checkMapType(schema, path, errors);
  checkListType(schema, path, errors);
  for (const [i, rule] of (schema['x-kubernetes-validations'] ?? []).entries()) {
    checkRuleForm(rule, schema, `${path}.x-kubernetes-validations[${i}]`, errors);
  }
}

function checkMapType(schema: Schema, path: string, errors: FieldError[]): void {
  const mapType = schema['x-kubernetes-map-type'];
  if (mapType === undefined) return;
  checkKeywordType(schema, 'object', 'x-kubernetes-map-type', path, errors);
  if (!MAP_TYPES.includes(mapType)) {
    errors.push(unsupportedValue(`${path}.x-kubernetes-map-type`, mapType, MAP_TYPES));
  }
}

function checkKeywordType(schema: Schema, type: string, keyword: string, path: string, errors: FieldError[]): void {
  if (schema.type === type) return;
  const detail = `must be ${type} if ${keyword} is specified`;
  errors.push(schema.type ? invalidValue(`${path}.type`, schema.type, detail) : requiredValue(`${path}.type`, detail));
}

function checkListType(schema: Schema, path: string, errors: FieldError[]): void {
  const listType = schema['x-kubernetes-list-type'];
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  if (keys.length > 0 && listType !== 'map') {
    const at = `${path}.x-kubernetes-list-type`;
    const detail = 'must be map if x-kubernetes-list-map-keys is non-empty';
    errors.push(listType === undefined ? requiredValue(at, detail) : invalidValue(at, listType, detail));
  }
  if (listType === undefined) return;
  checkKeywordType(schema, 'array', 'x-kubernetes-list-type', path, errors);
  if (!LIST_TYPES.includes(listType)) {
    errors.push(unsupportedValue(`${path}.x-kubernetes-list-type`, listType, LIST_TYPES));
  }
  if ((listType === 'set' || listType === 'map') && schema.items?.nullable === true) {
    const detail = `cannot be nullable when x-kubernetes-list-type is ${listType}`;
    errors.push(forbiddenField(`${path}.items.nullable`, detail));
  }
  if (listType === 'set') checkSetItems(schema.items, `${path}.items`, errors);
  if (listType === 'map') checkMapItems(schema.items, keys, path, errors);
}

function checkSetItems(items: Schema | undefined, path: string, errors: FieldError[]): void {
  const detail = 'must be atomic as item of a list with x-kubernetes-list-type=set';
  const listType = items?.['x-kubernetes-list-type'];
  if (items?.type === 'array' && listType !== undefined && listType !== 'atomic') {
    errors.push(invalidValue(`${path}.x-kubernetes-list-type`, listType, detail));
  }
  if (items?.type === 'object' && items['x-kubernetes-map-type'] !== 'atomic') {
    errors.push(invalidValue(`${path}.x-kubernetes-map-type`, items['x-kubernetes-map-type'], detail));
  }
}

function checkMapItems(items: Schema | undefined, keys: readonly string[], path: string, errors: FieldError[]): void {
  const keysPath = `${path}.x-kubernetes-list-map-keys`;
  if (keys.length === 0) {
    errors.push(requiredValue(keysPath, 'must not be empty if x-kubernetes-list-type is map'));
  }
  if (items === undefined) {
    errors.push(requiredValue(`${path}.items`, 'must have a schema if x-kubernetes-list-type is map'));
    return;
  }
  if (items.type !== 'object') {
    const detail = "must be object if parent array's x-kubernetes-list-type is map";
    errors.push(invalidValue(`${path}.items.type`, items.type ?? '', detail));
    return;
  }
  if (new Set(keys).size < keys.length) {
    errors.push(invalidValue(keysPath, keys, 'must not contain duplicate entries'));
  }
  for (const key of new Set(keys)) checkMapKey(key, keys, items, path, errors);
}

function checkMapKey(key: string, keys: readonly string[], items: Schema, path: string, errors: FieldError[]): void {
  const property = Object.hasOwn(items.properties ?? {}, key) ? items.properties?.[key] : undefined;
  const at = `${path}.items.properties[${key}]`;
  if (property === undefined) {
    const detail = 'entries must all be names of item properties';
    errors.push(invalidValue(`${path}.x-kubernetes-list-map-keys`, keys, detail));
    return;
  }
  if (property.type === 'array' || property.type === 'object') {
    const detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
    errors.push(invalidValue(`${at}.type`, property.type, detail));
  }
  const inKeys = 'this property is in x-kubernetes-list-map-keys, so it';
  if (property.default === undefined && !items.required?.includes(key)) {
    errors.push(requiredValue(`${at}.default`, `${inKeys} must have a default or be a required property`));
  }
  if (property.nullable === true) errors.push(forbiddenField(`${at}.nullable`, `${inKeys} cannot be nullable`));
}

/** Checks only the form of a rule. rule-rules.ts compiles rules of otherwise valid schemas. */
function checkRuleForm(rule: ValidationRule, schema: Schema, path: string, errors: FieldError[]): void {
  const { rule: source, message = '', messageExpression = '', reason, fieldPath = '' } = rule;
  if (!source?.trim()) {
    errors.push(requiredValue(`${path}.rule`, 'rule is not specified'));
  } else if (message !== '' && message.trim() === '') {
    errors.push(invalidValue(`${path}.message`, message, 'message must be non-empty if specified'));
  } else if (LINE_BREAK.test(message.trim())) {
    errors.push(invalidValue(`${path}.message`, message, 'message must not contain line breaks'));
  } else if (LINE_BREAK.test(source.trim()) && message === '') {
    errors.push(requiredValue(`${path}.message`, 'message must be specified if rule contains line breaks'));
  }
  if (messageExpression !== '' && messageExpression.trim() === '') {
    errors.push(requiredValue(`${path}.messageExpression`, 'messageExpression must be non-empty if specified'));
  }
  if (reason !== undefined && !REASONS.includes(reason)) {
    errors.push(unsupportedValue(`${path}.reason`, reason, REASONS));
  }
  if (fieldPath !== '') checkFieldPath(fieldPath, schema, `${path}.fieldPath`, errors);
}

const LINE_BREAK = /[\r\n]/;

function checkFieldPath(fieldPath: string, schema: Schema, path: string, errors: FieldError[]): void {
  if (fieldPath.trim() === '') errors.push(invalidValue(path, fieldPath, 'fieldPath must be non-empty if specified'));
  if (LINE_BREAK.test(fieldPath)) {
    errors.push(invalidValue(path, fieldPath, 'fieldPath must not contain line breaks'));
  }
  try {
    fieldAt(fieldPath, schema);
  } catch (error) {
    if (!(error instanceof FieldPathError)) throw error;
    errors.push(invalidValue(path, fieldPath, 'fieldPath must be a valid path'));
  }
}

/** Validates one version of a definition: schema, columns, subresources, selectable fields. */
import type { CrdColumn, CrdVersion } from '#engine/registry/crd/definition.ts';
import { checkDefaults, checkDefaultsAgainstRules } from '#engine/registry/crd/default-rules.ts';
import { checkOpenApi } from '#engine/registry/crd/openapi-rules.ts';
import { checkValidationRules } from '#engine/registry/crd/rule-rules.ts';
import { checkSchemaShape } from '#engine/registry/crd/schema-shape.ts';
import { checkStructural } from '#engine/registry/crd/structural-rules.ts';
import { fieldAt, FieldPathError, type FoundField } from '#engine/registry/structural/rules/field-path.ts';
import { duplicateValue, type FieldError, invalidValue, requiredValue, tooMany } from '#kube/field-error.ts';
import type { Schema } from '#kube/schema.ts';

const MAX_SELECTABLE_FIELDS = 8;
const MAX_DEPRECATION_WARNING_BYTES = 256;
const COLUMN_TYPES = ['boolean', 'date', 'integer', 'number', 'string'];
const COLUMN_FORMATS = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password'];

export function checkVersion(version: CrdVersion, path: string): FieldError[] {
  return [
    ...checkDeprecation(version, path),
    ...checkSchema(version, `${path}.schema.openAPIV3Schema`),
    ...checkScale(version, `${path}.subresources.scale`),
    ...(version.additionalPrinterColumns ?? []).flatMap((column, i) =>
      checkColumn(column, `${path}.additionalPrinterColumns[${i}]`),
    ),
    ...checkSelectableFields(version, `${path}.selectableFields`),
  ];
}

function checkDeprecation({ deprecated, deprecationWarning: text }: CrdVersion, path: string): FieldError[] {
  if (text === undefined) return [];
  const messages: string[] = [];
  if (deprecated !== true) messages.push('can only be set for deprecated versions');
  else {
    if (Buffer.byteLength(text) > MAX_DEPRECATION_WARNING_BYTES) messages.push('must be <= 256 characters long');
    if (text === '') messages.push('must not be an empty string');
    const at = text.search(/[\p{C}\p{Zl}\p{Zp}]/u);
    if (at >= 0) {
      messages.push(`must only contain printable UTF-8 characters; non-printable character found at index ${at}`);
    }
  }
  return messages.map((message) => invalidValue(`${path}.deprecationWarning`, text, message));
}

function checkSchema({ schema, subresources }: CrdVersion, path: string): FieldError[] {
  const root = schema?.openAPIV3Schema;
  if (root === undefined || root === null) return [requiredValue(path, 'schemas are required')];
  const shape = checkSchemaShape(root, path);
  if (shape.length > 0) return shape;
  const structure = checkStructural(root, path);
  const defaults = structure.length > 0 ? [] : checkDefaults(root, path);
  const openApi = checkOpenApi(root, path);
  // Types come from the schema, so an invalid schema would only be reported twice.
  const isSound = structure.length + defaults.length + openApi.length === 0;
  const rules = isSound ? checkValidationRules(root, path) : [];
  return [
    ...(subresources?.status === undefined ? [] : checkRoot(root, path)),
    ...structure,
    ...defaults,
    ...openApi,
    ...rules,
    ...(isSound && rules.length === 0 ? checkDefaultsAgainstRules(root, path) : []),
  ];
}

const REFUSED_BESIDE_STATUS: readonly (keyof Schema)[] = [
  'default',
  'enum',
  'maxProperties',
  'minProperties',
  'additionalProperties',
  'allOf',
  'anyOf',
  'oneOf',
  'not',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-type',
  'x-kubernetes-map-type',
];
const ALLOWED_AT_ROOT =
  'Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations';

/** Status is validated separately, so the root may not have rules that span status and other fields. */
function checkRoot(schema: Schema, path: string): FieldError[] {
  if (!REFUSED_BESIDE_STATUS.some((keyword) => schema[keyword] !== undefined)) return [];
  const detail = `only [${ALLOWED_AT_ROOT}] fields are allowed at the root of the schema if the status subresource is enabled`;
  return [invalidValue(path, schema, detail)];
}

function checkColumn({ name, type, format, jsonPath }: CrdColumn, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (name === '') errors.push(requiredValue(`${path}.name`));
  const typeDetail = `must be one of ${COLUMN_TYPES.join(',')}`;
  if (type === '') errors.push(requiredValue(`${path}.type`, typeDetail));
  else if (type !== undefined && !COLUMN_TYPES.includes(type)) {
    errors.push(invalidValue(`${path}.type`, type, typeDetail));
  }
  if (format && !COLUMN_FORMATS.includes(format)) {
    errors.push(invalidValue(`${path}.format`, format, `must be one of ${COLUMN_FORMATS.join(',')}`));
  }
  // Kubernetes' messages say JSONPath although the field is jsonPath.
  if (jsonPath === '') errors.push(requiredValue(`${path}.JSONPath`));
  else if (jsonPath !== undefined) errors.push(...checkPath(jsonPath, `${path}.JSONPath`));
  return errors;
}

function checkPath(jsonPath: string, path: string): FieldError[] {
  // A scale is written to its path, which must not leave the object.
  if (jsonPath.split('.').includes('__proto__')) return [invalidValue(path, jsonPath, 'must not name __proto__')];
  return jsonPath.startsWith('.') ? [] : [invalidValue(path, jsonPath, 'must be a simple json path starting with .')];
}

function checkScale({ subresources }: CrdVersion, path: string): FieldError[] {
  const scale = subresources?.scale;
  if (scale === undefined) return [];
  return [
    ...checkReplicas(scale.specReplicasPath, ['.spec.'], 'under .spec', `${path}.specReplicasPath`),
    ...checkReplicas(scale.statusReplicasPath, ['.status.'], 'under .status', `${path}.statusReplicasPath`),
    ...(scale.labelSelectorPath
      ? checkReplicas(
          scale.labelSelectorPath,
          ['.spec.', '.status.'],
          'under either .spec or .status',
          `${path}.labelSelectorPath`,
        )
      : []),
  ];
}

/** The schema reports an absent path. */
function checkReplicas(jsonPath: string | undefined, roots: string[], where: string, path: string): FieldError[] {
  if (jsonPath === undefined) return [];
  if (jsonPath === '') return [requiredValue(path)];
  const messages = checkPath(jsonPath, path);
  if (messages.length > 0 || roots.some((root) => jsonPath.startsWith(root))) return messages;
  return [invalidValue(path, jsonPath, `should be a json path ${where}`)];
}

function checkSelectableFields({ selectableFields = [], schema }: CrdVersion, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [i, { jsonPath }] of selectableFields.entries()) {
    const at = `${path}[${i}].jsonPath`;
    if (jsonPath === '') errors.push(requiredValue(at));
    if (!jsonPath) continue;
    const found = findSelectableField(jsonPath, schema?.openAPIV3Schema);
    if (typeof found === 'string') {
      errors.push(invalidValue(at, jsonPath, `is an invalid path: ${found}`));
      continue;
    }
    if (/^metadata(?:\.|$)/.test(found.path)) {
      errors.push(invalidValue(at, jsonPath, 'must not point to fields in metadata'));
    }
    if (!SELECTABLE_TYPES.has(found.schema?.type)) {
      const detail =
        'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.';
      errors.push(invalidValue(at, jsonPath, detail));
    }
    if (seen.has(found.path)) errors.push(duplicateValue(at, jsonPath));
    seen.add(found.path);
  }
  if (seen.size > MAX_SELECTABLE_FIELDS) errors.push(tooMany(path, seen.size, MAX_SELECTABLE_FIELDS));
  return errors;
}

const SELECTABLE_TYPES: ReadonlySet<string | undefined> = new Set(['string', 'boolean', 'integer']);

/** Returns the field, or why there is none. */
function findSelectableField(jsonPath: string, root: Schema | undefined): FoundField | string {
  try {
    return fieldAt(jsonPath, root ?? {}, { brackets: false });
  } catch (error) {
    if (error instanceof FieldPathError) return error.message;
    throw error;
  }
}

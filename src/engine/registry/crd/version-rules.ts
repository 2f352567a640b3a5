/** The rules for one version of a definition: schema, columns, subresources, selectable fields. */
import type { CrdColumn, CrdVersion } from '#engine/registry/crd/definition.ts';
import { defaultFaults, defaultRuleFaults } from '#engine/registry/crd/default-rules.ts';
import { openApiFaults } from '#engine/registry/crd/openapi-rules.ts';
import { ruleFaults } from '#engine/registry/crd/rule-rules.ts';
import { schemaShapeFaults } from '#engine/registry/crd/schema-shape.ts';
import { structuralFaults } from '#engine/registry/crd/structural-rules.ts';
import { fieldAt, FieldPathError, type FoundField } from '#engine/registry/structural/rules/field-path.ts';
import { duplicateValue, type FieldError, invalidValue, requiredValue, tooMany } from '#kube/field-error.ts';
import type { Schema } from '#kube/schema.ts';

const MAX_SELECTABLE_FIELDS = 8;
const MAX_DEPRECATION_WARNING_BYTES = 256;
const COLUMN_TYPES = ['boolean', 'date', 'integer', 'number', 'string'];
const COLUMN_FORMATS = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password'];

export function versionFaults(version: CrdVersion, path: string): FieldError[] {
  return [
    ...deprecationFaults(version, path),
    ...schemaFaults(version, `${path}.schema.openAPIV3Schema`),
    ...scaleFaults(version, `${path}.subresources.scale`),
    ...(version.additionalPrinterColumns ?? []).flatMap((column, i) =>
      columnFaults(column, `${path}.additionalPrinterColumns[${i}]`),
    ),
    ...selectableFaults(version, `${path}.selectableFields`),
  ];
}

function deprecationFaults({ deprecated, deprecationWarning: text }: CrdVersion, path: string): FieldError[] {
  if (text === undefined) return [];
  const faults: string[] = [];
  if (deprecated !== true) faults.push('can only be set for deprecated versions');
  else {
    if (Buffer.byteLength(text) > MAX_DEPRECATION_WARNING_BYTES) faults.push('must be <= 256 characters long');
    if (text === '') faults.push('must not be an empty string');
    const at = text.search(/[\p{C}\p{Zl}\p{Zp}]/u);
    if (at >= 0) {
      faults.push(`must only contain printable UTF-8 characters; non-printable character found at index ${at}`);
    }
  }
  return faults.map((fault) => invalidValue(`${path}.deprecationWarning`, text, fault));
}

function schemaFaults({ schema, subresources }: CrdVersion, path: string): FieldError[] {
  const root = schema?.openAPIV3Schema;
  if (root === undefined || root === null) return [requiredValue(path, 'schemas are required')];
  const shape = schemaShapeFaults(root, path);
  if (shape.length > 0) return shape;
  const structure = structuralFaults(root, path);
  const defaults = structure.length > 0 ? [] : defaultFaults(root, path);
  const openApi = openApiFaults(root, path);
  // Types come from the schema: what is wrong with it would only be told a second time.
  const isSound = structure.length + defaults.length + openApi.length === 0;
  const rules = isSound ? ruleFaults(root, path) : [];
  return [
    ...(subresources?.status === undefined ? [] : rootFaults(root, path)),
    ...structure,
    ...defaults,
    ...openApi,
    ...rules,
    ...(isSound && rules.length === 0 ? defaultRuleFaults(root, path) : []),
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

/** Status is validated apart, so the root may not hold rules that look at it and the rest together. */
function rootFaults(schema: Schema, path: string): FieldError[] {
  if (!REFUSED_BESIDE_STATUS.some((keyword) => schema[keyword] !== undefined)) return [];
  const detail = `only [${ALLOWED_AT_ROOT}] fields are allowed at the root of the schema if the status subresource is enabled`;
  return [invalidValue(path, schema, detail)];
}

function columnFaults({ name, type, format, jsonPath }: CrdColumn, path: string): FieldError[] {
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
  // The field is jsonPath, but so it is in all the messages.
  if (jsonPath === '') errors.push(requiredValue(`${path}.JSONPath`));
  else if (jsonPath !== undefined) errors.push(...pathFaults(jsonPath, `${path}.JSONPath`));
  return errors;
}

function pathFaults(jsonPath: string, path: string): FieldError[] {
  // A scale is written along its path: it must not lead out of the object.
  if (jsonPath.split('.').includes('__proto__')) return [invalidValue(path, jsonPath, 'must not name __proto__')];
  return jsonPath.startsWith('.') ? [] : [invalidValue(path, jsonPath, 'must be a simple json path starting with .')];
}

function scaleFaults({ subresources }: CrdVersion, path: string): FieldError[] {
  const scale = subresources?.scale;
  if (scale === undefined) return [];
  return [
    ...replicasFaults(scale.specReplicasPath, ['.spec.'], 'under .spec', `${path}.specReplicasPath`),
    ...replicasFaults(scale.statusReplicasPath, ['.status.'], 'under .status', `${path}.statusReplicasPath`),
    ...(scale.labelSelectorPath
      ? replicasFaults(
          scale.labelSelectorPath,
          ['.spec.', '.status.'],
          'under either .spec or .status',
          `${path}.labelSelectorPath`,
        )
      : []),
  ];
}

/** An absent path is the schema's to tell. */
function replicasFaults(jsonPath: string | undefined, roots: string[], where: string, path: string): FieldError[] {
  if (jsonPath === undefined) return [];
  if (jsonPath === '') return [requiredValue(path)];
  const faults = pathFaults(jsonPath, path);
  if (faults.length > 0 || roots.some((root) => jsonPath.startsWith(root))) return faults;
  return [invalidValue(path, jsonPath, `should be a json path ${where}`)];
}

function selectableFaults({ selectableFields = [], schema }: CrdVersion, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [i, { jsonPath }] of selectableFields.entries()) {
    const at = `${path}[${i}].jsonPath`;
    if (jsonPath === '') errors.push(requiredValue(at));
    if (!jsonPath) continue;
    const found = selectableField(jsonPath, schema?.openAPIV3Schema);
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

/** Or why there is none. */
function selectableField(jsonPath: string, root: Schema | undefined): FoundField | string {
  try {
    return fieldAt(jsonPath, root ?? {}, { brackets: false });
  } catch (error) {
    if (error instanceof FieldPathError) return error.message;
    throw error;
  }
}

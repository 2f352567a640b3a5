/** ConfigMap. */
import { apiType, optional, pointer } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age } from '#engine/registry/kinds/shared/columns.ts';
import { checkConfigKey, MAX_DATA_BYTES } from '#engine/registry/kinds/shared/formats.ts';
import { checkImmutableData } from '#engine/registry/kinds/core/immutable-data.ts';
import { type FieldError, invalidValue, tooLong } from '#kube/field-error.ts';
import { bool, bytes, map, str } from '#kube/schema-dsl.ts';

const configMap = apiType('core.v1.ConfigMap', 'Configuration data for pods to consume.', {
  immutable: pointer(4, bool(), 'Whether the data can no longer be changed.'),
  data: optional(2, map(str()), 'Configuration data as UTF-8 strings.'),
  binaryData: optional(3, map(bytes()), 'Configuration data as base64 encoded bytes.'),
});

export const configMaps = defineKind({
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
  shortNames: ['cm'],
  schema: configMap,
  columns: [
    {
      name: 'Data',
      description: 'Number of keys.',
      value: ({ data = {}, binaryData = {} }) => Object.keys(data).length + Object.keys(binaryData).length,
    },
    age,
  ],
  validate: ({ data = {}, binaryData = {} }) => {
    const errors: FieldError[] = [];
    let size = 0;
    for (const [key, value] of Object.entries(data)) {
      errors.push(...checkConfigKey(`data[${key}]`, key));
      if (Object.hasOwn(binaryData, key)) {
        errors.push(invalidValue(`data[${key}]`, key, 'duplicate of key present in binaryData'));
      }
      size += Buffer.byteLength(value);
    }
    for (const [key, value] of Object.entries(binaryData)) {
      errors.push(...checkConfigKey(`binaryData[${key}]`, key));
      size += Buffer.byteLength(value, 'base64');
    }
    // The error is about the whole object; an empty path prints as `[]`.
    if (size > MAX_DATA_BYTES) errors.push(tooLong('[]', MAX_DATA_BYTES));
    return errors;
  },
  validateUpdate: (object, old) => checkImmutableData(object, old, ['data', 'binaryData']),
});

/** Secret. `stringData` is write-only: it is merged into `data` and never stored. */
import { apiType, optional, pointer } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age } from '#engine/registry/kinds/shared/columns.ts';
import { checkConfigKey, checkImmutableValue, MAX_DATA_BYTES } from '#engine/registry/kinds/shared/formats.ts';
import { checkImmutableData } from '#engine/registry/kinds/core/immutable-data.ts';
import { type FieldError, invalidValue, requiredValue, tooLong } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import { bool, bytes, map, str } from '#kube/schema-dsl.ts';

const secret = apiType('core.v1.Secret', 'Secret data of a certain type, such as credentials.', {
  immutable: pointer(5, bool(), 'Whether the data can no longer be changed.'),
  data: optional(2, map(bytes()), 'Secret data as base64 encoded bytes.'),
  stringData: optional(4, map(str()), 'Secret data as strings. Write-only: merged into data on write.'),
  type: optional(3, str({ default: 'Opaque' }), 'Type of the secret data.'),
});

const REDACTED = '<secret contents redacted>';
const ACCOUNT_ANNOTATION = 'kubernetes.io/service-account.name';

export const secrets = defineKind({
  kind: 'Secret',
  plural: 'secrets',
  namespaced: true,
  schema: secret,
  columns: [
    { name: 'Type', value: ({ type }) => type },
    { name: 'Data', description: 'Number of keys.', value: ({ data = {} }) => Object.keys(data).length },
    age,
  ],
  selectableFields: { type: ({ type }) => type ?? '' },
  defaults(object) {
    const { stringData } = object;
    if (isRecord(stringData)) {
      const encoded = Object.entries(stringData).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
      object.data = { ...object.data, ...(Object.fromEntries(encoded) as Record<string, string>) };
    }
    delete object.stringData;
  },
  validate: ({ metadata, data = {}, type }) => {
    const errors: FieldError[] = [];
    let size = 0;
    for (const [key, value] of Object.entries(data)) {
      errors.push(...checkConfigKey(`data[${key}]`, key));
      size += Buffer.byteLength(value, 'base64');
    }
    if (size > MAX_DATA_BYTES) errors.push(tooLong('data', MAX_DATA_BYTES));
    return [...errors, ...checkType(type ?? 'Opaque', data, metadata.annotations ?? {})];
  },
  validateUpdate: (object, old) => [
    ...checkImmutableValue('type', object.type, old.type),
    ...checkImmutableData(object, old, ['data']),
  ],
});

type Data = Readonly<Record<string, string>>;

/** Checks the contents that a type of secret requires. */
function checkType(type: string, data: Data, annotations: Data): FieldError[] {
  const missing = (...keys: string[]) =>
    keys.filter((key) => !Object.hasOwn(data, key)).map((key) => requiredValue(`data[${key}]`));
  switch (type) {
    case 'kubernetes.io/service-account-token':
      return annotations[ACCOUNT_ANNOTATION] ? [] : [requiredValue(`metadata.annotations[${ACCOUNT_ANNOTATION}]`)];
    case 'kubernetes.io/dockercfg':
      return [...missing('.dockercfg'), ...checkJson('.dockercfg', data)];
    case 'kubernetes.io/dockerconfigjson':
      return [...missing('.dockerconfigjson'), ...checkJson('.dockerconfigjson', data)];
    case 'kubernetes.io/basic-auth': {
      const errors = missing('username', 'password');
      return errors.length === 2 ? errors : [];
    }
    case 'kubernetes.io/ssh-auth':
      return data['ssh-privatekey'] ? [] : [requiredValue('data[ssh-privatekey]')];
    case 'kubernetes.io/tls':
      return missing('tls.crt', 'tls.key');
    default:
      return [];
  }
}

function checkJson(key: string, data: Data): FieldError[] {
  const value = data[key];
  if (value === undefined) return [];
  try {
    if (isRecord(JSON.parse(Buffer.from(value, 'base64').toString()))) return [];
  } catch {
    // Reported below; the parser's message would quote the secret.
  }
  return [invalidValue(`data[${key}]`, REDACTED, 'must be a JSON object')];
}

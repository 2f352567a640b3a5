import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { metadataSchema } from '#engine/registry/kinds/meta/object-meta.ts';
import { compileSchema } from '#engine/registry/structural/compile.ts';
import { decodeTypeError } from '#engine/registry/structural/decode-type-error.ts';
import { bool, bytes, int32, intOrString, list, map, obj, quantity, str, time } from '#kube/schema-dsl.ts';

const container = obj({ name: str(), tty: bool(), ports: list(obj({ containerPort: int32() })), probe: intOrString() });
const pod = compileSchema(
  obj({
    metadata: metadataSchema,
    data: map(str()),
    secret: map(bytes()),
    limits: map(quantity()),
    spec: obj({ hostNetwork: bool(), replicas: int32(), containers: list(container), args: list(str()), at: time() }),
  }),
);

const into = (field: string, type: string, value: string) =>
  `json: cannot unmarshal ${value} into Go struct field ${field} of type ${type}`;

const cases: Record<string, { object: Record<string, unknown>; want: string | undefined }> = {
  'returns nothing for valid values': {
    object: {
      spec: { hostNetwork: true, replicas: 1, containers: [{ name: 'a', probe: 'x' }], at: '2026-01-01T00:00:00Z' },
    },
    want: undefined,
  },
  'reports struct, path and type': {
    object: { spec: { hostNetwork: 'yes' } },
    want: into('PodSpec.spec.hostNetwork', 'bool', 'string'),
  },
  'reports the metadata struct': {
    object: { metadata: { labels: 'x' } },
    want: into('ObjectMeta.metadata.labels', 'map[string]string', 'string'),
  },
  'reports a map by its field, without the key': {
    object: { data: { a: 1 } },
    want: into('Pod.data', 'string', 'number'),
  },
  'reports labels without the key': {
    object: { metadata: { labels: { a: true } } },
    want: into('ObjectMeta.metadata.labels', 'string', 'bool'),
  },
  'omits indexes': {
    object: { spec: { containers: [{}, { tty: 1 }] } },
    want: into('Container.spec.containers.tty', 'bool', 'number'),
  },
  'reports a list of structs': {
    object: { spec: { containers: {} } },
    want: into('PodSpec.spec.containers', '[]v1.Container', 'object'),
  },
  'reports the struct that a scalar replaces': {
    object: { spec: 'x' },
    want: into('Pod.spec', 'v1.PodSpec', 'string'),
  },
  'shows a fractional number': {
    object: { spec: { replicas: 3.5 } },
    want: into('PodSpec.spec.replicas', 'int32', 'number 3.5'),
  },
  'shows a number that is too large': {
    object: { spec: { containers: [{ ports: [{ containerPort: 4294967296 }] }] } },
    want: into('Port.spec.containers.ports.containerPort', 'int32', 'number 4294967296'),
  },
  'treats null as absent': {
    object: { metadata: { creationTimestamp: null }, spec: { args: null } },
    want: undefined,
  },
  'ignores unknown fields': { object: { spec: { other: {} } }, want: undefined },
  'parses times like Go': {
    object: { spec: { at: 'soon' } },
    want: 'parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006"',
  },
  'parses base64 like Go': {
    object: { secret: { a: 'aGk=', b: 'ab!=' } },
    want: 'illegal base64 data at input byte 2',
  },
  'accepts quantities': { object: { limits: { a: '1Gi', b: 1.5, c: 0 } }, want: undefined },
  'parses quantities like Go': {
    object: { limits: { a: '1 GB' } },
    want: "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  },
  'accepts only strings and numbers as a quantity': {
    object: { limits: { a: true } },
    want: "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  },
};

describe('decodeTypeError', () => {
  for (const [name, { object, want }] of Object.entries(cases)) {
    it(name, () => {
      assert.equal(decodeTypeError({ apiVersion: 'v1', kind: 'Pod', ...object }, pod), want);
    });
  }
});

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { decodeProtobuf } from '#engine/protobuf/decode-protobuf.ts';
import {
  bool,
  body,
  bytes,
  double,
  entry,
  int,
  message,
  tag,
  text,
  varint,
} from '#engine/protobuf/testing/wire-writer.ts';

const METADATA = 1;

/** Decodes and omits the fields that every object has. */
function decode(whole: Buffer): unknown {
  const { kind: _kind, apiVersion: _apiVersion, metadata: _metadata, ...rest } = decodeProtobuf(whole).object;
  return rest;
}

function metadataOf(...fields: Buffer[]): unknown {
  return decodeProtobuf(body('v1', 'ServiceAccount', message(METADATA, ...fields))).object['metadata'];
}

function schemaOf(...fields: Buffer[]): unknown {
  const openApi = message(1, ...fields);
  const crd = body('apiextensions.k8s.io/v1', 'CustomResourceDefinition', message(2, message(7, message(4, openApi))));
  const { spec } = decodeProtobuf(crd).object as { spec: { versions: { schema: { openAPIV3Schema: unknown } }[] } };
  return spec.versions[0]?.schema.openAPIV3Schema;
}

interface Case {
  readonly got: () => unknown;
  readonly want: unknown;
}

const second = (seconds: number) => [int(1, seconds), int(2, 0)];
const quota = (quantity: string) =>
  decode(body('v1', 'ResourceQuota', message(2, entry(1, 'cpu', message(2, text(1, quantity))))));
const pdb = (...minAvailable: Buffer[]) =>
  (decode(body('policy/v1', 'PodDisruptionBudget', message(2, message(1, ...minAvailable)))) as { spec: unknown }).spec;
const lease = (...spec: Buffer[]) => decode(body('coordination.k8s.io/v1', 'Lease', message(2, ...spec)));
const revision = (json: string) => decode(body('apps/v1', 'ControllerRevision', bytes(2, bytes1(json)), int(3, 1)));
const bytes1 = (content: string) => bytes(1, Buffer.from(content));

const rules: Record<string, Case> = {
  'the object contains kind and apiVersion': {
    got: () => decodeProtobuf(body('v1', 'Binding')).object,
    want: { kind: 'Binding', apiVersion: 'v1', metadata: {}, target: {} },
  },
  'the same kind name in two groups is two messages': {
    got: () => [
      decode(body('v1', 'Event', text(3, 'because'))),
      decode(body('events.k8s.io/v1', 'Event', text(7, 'because'))),
    ],
    want: [
      {
        involvedObject: {},
        reason: 'because',
        source: {},
        reportingComponent: '',
        reportingInstance: '',
      },
      { eventTime: null, reason: 'because', regarding: {}, deprecatedSource: {} },
    ],
  },
  'options of any group are DeleteOptions': {
    got: () => decodeProtobuf(body('batch/v1', 'DeleteOptions', int(1, 0), text(4, 'Background'))).object,
    want: { kind: 'DeleteOptions', apiVersion: 'batch/v1', gracePeriodSeconds: 0, propagationPolicy: 'Background' },
  },
  'empty strings, zeros and false are omitted with omitempty': {
    got: () => metadataOf(text(1, 'a'), text(2, ''), text(3, ''), int(7, 0)),
    want: { name: 'a' },
  },
  'zero values are kept without omitempty': {
    got: () => decode(body('scheduling.k8s.io/v1', 'PriorityClass', int(2, 0), bool(3, false))),
    want: { value: 0 },
  },
  'the target of a pointer is kept, even zero': {
    got: () => decode(body('batch/v1', 'Job', message(2, int(1, 0), bool(10, false), message(4)))),
    want: {
      spec: { parallelism: 0, selector: {}, template: { metadata: {}, spec: { containers: null } }, suspend: false },
      status: {},
    },
  },
  'a nil pointer is omitted, or null if it is required': {
    got: () => (decode(body('authentication.k8s.io/v1', 'TokenRequest')) as { spec: unknown }).spec,
    want: { audiences: null, expirationSeconds: null, boundObjectRef: null },
  },
  'a struct is always written, a list without omitempty as null': {
    got: () => decode(body('rbac.authorization.k8s.io/v1', 'RoleBinding')),
    want: { roleRef: { apiGroup: '', kind: '', name: '' } },
  },
  'a role without rules has null': {
    got: () => decode(body('rbac.authorization.k8s.io/v1', 'Role')),
    want: { rules: null },
  },
  'negative numbers are ten bytes long': {
    got: () => decode(body('scheduling.k8s.io/v1', 'PriorityClass', int(2, -1000))),
    want: { value: -1000 },
  },
  'an int64 keeps 53 bits': {
    got: () => [metadataOf(int(7, 2 ** 53 - 1)), metadataOf(int(7, -(2 ** 53 - 1))), metadataOf(int(7, 2n ** 62n))],
    want: [{ generation: 2 ** 53 - 1 }, { generation: -(2 ** 53 - 1) }, { generation: 2 ** 62 }],
  },
  'a map of strings': {
    got: () => metadataOf(entry(11, 'a', text(2, 'b')), entry(11, 'c', text(2, '')), entry(11, 'd')),
    want: { labels: { a: 'b', c: '', d: '' } },
  },
  'the later of two entries wins': {
    got: () => metadataOf(entry(11, 'a', text(2, 'old')), entry(11, 'a', text(2, 'new'))),
    want: { labels: { a: 'new' } },
  },
  'the key __proto__ is dropped': {
    got: () => [
      metadataOf(entry(11, '__proto__', text(2, 'x')), entry(11, 'a', text(2, 'b'))),
      metadataOf(entry(11, '__proto__', text(2, 'x'))),
    ],
    want: [{ labels: { a: 'b' } }, {}],
  },
  'bytes are base64': {
    got: () => decode(body('v1', 'Secret', entry(2, 'a', bytes(2, Buffer.from([0, 255]))), entry(2, 'none'))),
    want: { data: { a: 'AP8=', none: '' } },
  },
  'a time has whole seconds': {
    got: () => metadataOf(message(8, int(1, 1_700_000_000), int(2, 999_999_999))),
    want: { creationTimestamp: '2023-11-14T22:13:20Z' },
  },
  'an empty time is unset, the epoch is not': {
    got: () => [
      metadataOf(message(8)),
      metadataOf(message(8, ...second(-62_135_596_800))),
      metadataOf(message(8, ...second(0))),
    ],
    want: [{}, {}, { creationTimestamp: '1970-01-01T00:00:00Z' }],
  },
  'times before the epoch and far ahead': {
    got: () => [metadataOf(message(8, ...second(-1))), metadataOf(message(8, ...second(253_402_300_799)))],
    want: [{ creationTimestamp: '1969-12-31T23:59:59Z' }, { creationTimestamp: '9999-12-31T23:59:59Z' }],
  },
  'a micro time has six digits': {
    got: () => [lease(message(4, int(1, 1), int(2, 1999))), lease(message(4, int(1, 1), int(2, 987_654_321)))],
    want: [
      { spec: { renewTime: '1970-01-01T00:00:01.000001Z' } },
      { spec: { renewTime: '1970-01-01T00:00:01.987654Z' } },
    ],
  },
  'a quantity is a string': {
    got: () => [quota('1500m'), quota('0')],
    want: [
      { spec: { hard: { cpu: '1500m' } }, status: {} },
      { spec: { hard: { cpu: '0' } }, status: {} },
    ],
  },
  'a quantity that was not sent is zero': {
    got: () => decode(body('v1', 'ResourceQuota', message(2, entry(1, 'cpu')))),
    want: { spec: { hard: { cpu: '0' } }, status: {} },
  },
  'an IntOrString is an integer or a string': {
    got: () => [pdb(int(1, 0), int(2, 3), text(3, '')), pdb(int(1, 1), int(2, 0), text(3, '50%')), pdb()],
    want: [{ minAvailable: 3 }, { minAvailable: '50%' }, { minAvailable: 0 }],
  },
  'raw JSON is parsed, its prototype keys dropped': {
    got: () => [revision('{"a":[1,"x"]}'), revision('{"__proto__":{"x":1},"a":{"\\u005f_proto__":1,"b":2}}')],
    want: [
      { data: { a: [1, 'x'] }, revision: 1 },
      { data: { a: { b: 2 } }, revision: 1 },
    ],
  },
  'empty raw JSON is omitted': { got: () => revision(''), want: { revision: 1 } },
  'managed fields are JSON': {
    got: () => metadataOf(message(17, text(1, 'kubectl'), message(7, bytes1('{"f:spec":{}}')))),
    want: { managedFields: [{ manager: 'kubectl', fieldsV1: { 'f:spec': {} } }] },
  },
  'extra values are lists': {
    got: () =>
      decode(
        body(
          'authorization.k8s.io/v1',
          'SubjectAccessReview',
          message(2, entry(5, 'a', message(2, text(1, 'x'))), entry(5, 'b')),
        ),
      ),
    want: { spec: { extra: { a: ['x'], b: [] } }, status: { allowed: false } },
  },
  'the fields of inlined messages are part of the outer message': {
    got: () => decode(body('v1', 'Pod', message(2, message(1, text(1, 'v'), message(2, message(2)))))),
    want: { spec: { volumes: [{ name: 'v', emptyDir: {} }], containers: null }, status: {} },
  },
  'numbers may be packed or not': {
    got: () => {
      const groups = (...fields: Buffer[]) => decode(body('v1', 'Pod', message(2, message(14, ...fields))));
      return [
        groups(int(4, 7), int(4, 0)),
        groups(bytes(4, Buffer.concat([varint(7), varint(300)]))),
        groups(bytes(4, Buffer.alloc(0))),
      ];
    },
    want: [[7, 0], [7, 300], undefined].map((supplementalGroups) => ({
      spec: { containers: null, securityContext: supplementalGroups === undefined ? {} : { supplementalGroups } },
      status: {},
    })),
  },
  'a repeated message is merged': {
    got: () =>
      decodeProtobuf(body('v1', 'ServiceAccount', message(1, text(1, 'a')), message(1, text(3, 'b')))).object[
        'metadata'
      ],
    want: { name: 'a', namespace: 'b' },
  },
  'unknown fields of every wire type are skipped': {
    got: () => {
      const group = [tag(202, 3), int(1, 1), tag(203, 3), text(1, 'x'), tag(203, 4), tag(202, 4)];
      const fixed32 = Buffer.concat([tag(204, 5), Buffer.alloc(4)]);
      return metadataOf(int(200, 1), text(201, 'x'), ...group, fixed32, double(205, 1), text(1, 'a'));
    },
    want: { name: 'a' },
  },
  'schemas recurse': {
    got: () => {
      const items = message(24, message(1, text(5, 'string')));
      return schemaOf(text(5, 'object'), entry(29, 'a', message(2, text(5, 'array'), items)), double(11, 0.5));
    },
    want: { type: 'object', minimum: 0.5, properties: { a: { type: 'array', items: { type: 'string' } } } },
  },
  'a schema or another value': {
    got: () => [
      schemaOf(message(30, bool(1, true)), message(33, bool(1, false))),
      schemaOf(message(30, bool(1, true), message(2, text(5, 'string')))),
      schemaOf(message(24, message(2, text(5, 'a')), message(2, text(5, 'b')))),
      schemaOf(entry(32, 'k', message(2, text(2, 'x'))), entry(32, 'l', message(2, message(1, text(5, 'a'))))),
      schemaOf(message(8, bytes1('{"a":1}')), message(20, bytes1('"x"')), message(20, bytes1('null'))),
    ],
    want: [
      { additionalProperties: true, additionalItems: false },
      { additionalProperties: { type: 'string' } },
      { items: [{ type: 'a' }, { type: 'b' }] },
      { dependencies: { k: ['x'], l: { type: 'a' } } },
      { default: { a: 1 }, enum: ['x', null] },
    ],
  },
  'fields of Kubernetes after 1.32': {
    got: () => [
      decode(body('discovery.k8s.io/v1', 'EndpointSlice', message(2, message(8, message(2, text(1, 'node-1')))))),
      decode(body('apiextensions.k8s.io/v1', 'CustomResourceDefinition', message(3, message(1, int(6, 7))))),
    ],
    want: [
      {
        addressType: '',
        endpoints: [{ addresses: null, conditions: {}, hints: { forNodes: [{ name: 'node-1' }] } }],
        ports: null,
      },
      {
        spec: { group: '', names: { plural: '', kind: '' }, scope: '', versions: null },
        status: {
          conditions: [{ type: '', status: '', observedGeneration: 7 }],
          acceptedNames: { plural: '', kind: '' },
          storedVersions: null,
        },
      },
    ],
  },
  'an API service': {
    got: () =>
      decode(
        body(
          'apiregistration.k8s.io/v1',
          'APIService',
          message(
            2,
            message(1, text(1, 'ns'), text(2, 'svc'), int(3, 443)),
            text(2, 'g'),
            text(3, 'v1'),
            bytes(5, Buffer.from('ca')),
            int(7, 10),
            int(8, 20),
          ),
        ),
      ),
    want: {
      spec: {
        service: { namespace: 'ns', name: 'svc', port: 443 },
        group: 'g',
        version: 'v1',
        caBundle: 'Y2E=',
        groupPriorityMinimum: 10,
        versionPriority: 20,
      },
      status: {},
    },
  },
};

suite('decodeProtobuf', () => {
  for (const [sentence, { got, want }] of Object.entries(rules)) test(sentence, () => assert.deepEqual(got(), want));
});

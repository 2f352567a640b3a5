/**
 * Effects of Go's types on built-in kinds: which values are dropped, which do not decode, and the messages for them.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { aGadget, GADGETS, installGadgets } from '#test/support/gadgets.ts';
import { startTestApi, type CallOptions, type Loose, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
const CORE = '/api/v1/namespaces/golden';
const CONFIGMAPS = `${CORE}/configmaps`;
const QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

const configMap = (name: string, rest: Loose = {}, metadata: Loose = {}): Loose => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...metadata },
  ...rest,
});
const pod = (name: string, spec: Loose = {}): Loose => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
});
const patchOf = (type: string, body: unknown): CallOptions => ({ body, contentType: `application/${type}+json` });
const strategic = (body: unknown) => patchOf('strategic-merge-patch', body);
const merge = (body: unknown) => patchOf('merge-patch', body);
const jsonPatch = (body: unknown) => patchOf('json-patch', body);

before(async () => {
  api = await startTestApi();
  await installGadgets(api);
  await api.ok('POST', CONFIGMAPS, { body: configMap('one', { data: { a: 'b' } }) });
});
after(() => api.stop());

describe('empty maps and lists', () => {
  test('are dropped from built-in kinds', async () => {
    const body = configMap(
      'empty',
      { data: {}, binaryData: {} },
      { labels: {}, annotations: {}, finalizers: [], ownerReferences: [] },
    );
    const made = await api.ok('POST', CONFIGMAPS, { body });
    assert.deepEqual(Object.keys(made).sort(), ['apiVersion', 'kind', 'metadata']);
    assert.deepEqual(Object.keys(made.metadata).sort(), [
      'creationTimestamp',
      'name',
      'namespace',
      'resourceVersion',
      'uid',
    ]);
  });

  test('non-empty objects are kept', async () => {
    const spec = {
      automountServiceAccountToken: false,
      volumes: [{ name: 'v', emptyDir: {} }],
      nodeSelector: {},
      hostAliases: [],
      securityContext: {},
    };
    const made = await api.ok('POST', `${CORE}/pods`, { body: pod('dir', spec) });
    assert.deepEqual(made.spec.volumes, [{ name: 'v', emptyDir: {} }]);
    assert.deepEqual(
      [made.spec.nodeSelector, made.spec.hostAliases, made.spec.securityContext],
      [undefined, undefined, {}],
    );
  });

  test('are dropped from the metadata of custom resources, and kept in their other fields', async () => {
    const body = { ...aGadget('bare', { size: 1 }, { labels: {}, finalizers: [] }) };
    const made = await api.ok('POST', GADGETS, { body });
    assert.deepEqual([made.metadata.labels, made.metadata.finalizers], [undefined, undefined]);
    const status = { list: [], map: {} };
    assert.deepEqual((await api.ok('PATCH', `${GADGETS}/bare/status`, { body: { status } })).status, status);
  });

  for (const [name, options] of Object.entries({
    'a strategic patch': strategic({ metadata: { '$deleteFromPrimitiveList/finalizers': ['x.example/a'] } }),
    'a merge patch': merge({ metadata: { finalizers: [] } }),
    'a JSON patch': jsonPatch([{ op: 'remove', path: '/metadata/finalizers/0' }]),
  })) {
    test(`are removed after ${name}`, async () => {
      const made = await api.ok('POST', CONFIGMAPS, {
        body: {
          ...configMap('', {}, { finalizers: ['x.example/a'] }),
          metadata: { generateName: 'held-', finalizers: ['x.example/a'] },
        },
      });
      const patched = await api.ok('PATCH', `${CONFIGMAPS}/${made.metadata.name}`, options);
      assert.equal('finalizers' in patched.metadata, false);
      const before = api.store.revision;
      await api.ok('PATCH', `${CONFIGMAPS}/${made.metadata.name}`, merge({ metadata: { finalizers: [] } }));
      assert.equal(api.store.revision, before, 'a patch without an effect changes nothing');
    });
  }
});

interface Refusal {
  readonly url?: string;
  readonly patch: CallOptions;
  readonly code: number;
  /** The cause for 422, the message for 400. */
  readonly says: string | RegExp;
}

const refusals: Record<string, Refusal> = {
  'a number for a string, strategic': {
    patch: strategic({ data: { a: 1 } }),
    code: 422,
    says: 'Invalid value: "map[data:map[a:1]]": cannot convert int64 to string',
  },
  'a list for a map, strategic': {
    patch: strategic({ data: ['a'] }),
    code: 422,
    says: 'Invalid value: "map[data:[a]]": cannot restore map from slice',
  },
  'a number for a string, merge': {
    patch: merge({ data: { a: 1 } }),
    code: 422,
    says: /^Invalid value: "\{.*\\"data\\":\{\\"a\\":1\}.*\}": json: cannot unmarshal number into Go struct field ConfigMap\.data of type string$/,
  },
  'a number for a string, JSON': {
    patch: jsonPatch([{ op: 'replace', path: '/data/a', value: 1 }]),
    code: 422,
    says: /^Invalid value: "\{.*\}": json: cannot unmarshal number into Go struct field ConfigMap\.data of type string$/,
  },
  'an unknown field under Strict, strategic': {
    url: `${CONFIGMAPS}/one?fieldValidation=Strict`,
    patch: strategic({ dat: { a: 'b' } }),
    code: 422,
    says: 'Invalid value: "map[dat:map[a:b]]": strict decoding error: unknown field "dat"',
  },
  'an unknown field under Strict, merge': {
    url: `${CONFIGMAPS}/one?fieldValidation=Strict`,
    patch: merge({ dat: { a: 'b' } }),
    code: 422,
    says: /^Invalid value: "\{.*\\"dat\\":\{\\"a\\":\\"b\\"\}.*\}": strict decoding error: unknown field "dat"$/,
  },
  'metadata of a wrong type, strategic': {
    patch: strategic({ metadata: 'none' }),
    code: 422,
    says: 'Invalid value: "map[metadata:none]": cannot restore struct from: string',
  },
  'metadata of a wrong type, merge': {
    patch: merge({ metadata: ['none'] }),
    code: 422,
    says: /": json: cannot unmarshal array into Go struct field ConfigMap\.metadata of type v1\.ObjectMeta$/,
  },
  'invalid JSON, strategic': { patch: strategic('{'), code: 400, says: 'unexpected end of JSON input' },
  'invalid JSON, merge': {
    patch: merge('{nope'),
    code: 400,
    says: "error decoding patch: invalid character 'n' looking for beginning of object key string",
  },
  'invalid JSON, JSON': {
    patch: jsonPatch('['),
    code: 400,
    says: 'error decoding patch: unexpected end of JSON input',
  },
};

describe('a patch is refused for', () => {
  for (const [name, { url = `${CONFIGMAPS}/one`, patch, code, says }] of Object.entries(refusals)) {
    test(name, async () => {
      const before = api.store.revision;
      const { status, body } = await api.call('PATCH', url, patch);
      assert.equal(status, code, body.message);
      const reported = code === 422 ? body.details.causes[0].message : body.message;
      if (typeof says === 'string') assert.equal(reported, says);
      else assert.match(reported, says);
      if (code === 422) {
        assert.deepEqual(Object.keys(body.details), ['causes'], 'the details have neither kind nor name');
        assert.equal(body.details.causes[0].field, 'patch');
        assert.equal(body.message, ` "" is invalid: patch: ${reported}`);
      }
      assert.equal(api.store.revision, before);
    });
  }
});

test('an invalid quantity does not decode', async () => {
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1 GB' } } };
  const body = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'size' }, spec };
  const { status, body: answer } = await api.call('POST', `${CORE}/persistentvolumeclaims`, { body });
  assert.deepEqual(
    [status, answer.message],
    [400, `PersistentVolumeClaim in version "v1" cannot be handled as a PersistentVolumeClaim: ${QUANTITY}`],
  );
});

test('an update of a disruption budget must contain the replaced version', async () => {
  const url = '/apis/policy/v1/namespaces/golden/poddisruptionbudgets';
  const budget = (minAvailable: number, metadata: Loose = {}): Loose => ({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'pdb', ...metadata },
    spec: { minAvailable, selector: { matchLabels: { a: 'b' } } },
  });
  await api.ok('POST', url, { body: budget(1) });
  // Its controller writes the status first.
  await api.settle();
  const { status, body } = await api.call('PUT', `${url}/pdb`, { body: budget(2) });
  assert.equal(status, 422);
  assert.equal(
    body.message,
    'poddisruptionbudgets.policy "pdb" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be specified for an update',
  );
  const { resourceVersion } = (await api.ok('GET', `${url}/pdb`)).metadata;
  assert.equal((await api.ok('PUT', `${url}/pdb`, { body: budget(2, { resourceVersion }) })).spec.minAvailable, 2);
});

describe('unknown fields are reported', () => {
  test('for built-in kinds in the order of the document', async () => {
    const text = JSON.stringify({
      zeta: 1,
      metadata: { name: 'order', zeta: 1, alpha: 1 },
      alpha: 1,
      kind: 'ConfigMap',
      apiVersion: 'v1',
    });
    const { warnings } = await api.call('POST', CONFIGMAPS, { body: text });
    assert.deepEqual(warnings, ['zeta', 'metadata.zeta', 'metadata.alpha', 'alpha'].map(unknownField));
  });

  test('for custom resources with the metadata first and the rest sorted', async () => {
    const sent = { ...aGadget('order', { size: 1, zeta: 1, alpha: 1 }), beta: 1 };
    const body = JSON.stringify({ beta: 1, ...sent, metadata: { zeta: 1, ...sent.metadata } });
    const { warnings } = await api.call('POST', GADGETS, { body });
    assert.deepEqual(warnings, ['metadata.zeta', 'beta', 'spec.alpha', 'spec.zeta'].map(unknownField));
  });
});

const unknownField = (path: string) => `unknown field "${path}"`;

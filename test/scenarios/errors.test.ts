/** Refusals in kube-apiserver's words: code, reason and message, as recorded from version 1.32. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { aGadget, gadgetCrd, GADGETS, installGadgets } from '#test/support/gadgets.ts';
import { MALLORY, startTestApi, type CallOptions, type Loose, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;

before(async () => {
  api = await startTestApi();
  await installGadgets(api);
  await api.ok('POST', GADGETS, { body: aGadget('one', { size: 3, color: 'red' }, { labels: { app: 'golden' } }) });
});
after(() => api.stop());

interface Case {
  readonly request: [method: string, url: string, options?: CallOptions];
  readonly code: number;
  readonly reason: string;
  /** The whole message, or a part of it. */
  readonly message: string | RegExp;
  readonly details?: Loose;
}

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const one = `${GADGETS}/one`;
const jsonPatch = (body: unknown): CallOptions => ({ body, contentType: 'application/json-patch+json' });
const deep = (levels: number): string => '{"a":'.repeat(levels) + '1' + '}'.repeat(levels);

const cases: Record<string, Case> = {
  'an object that does not exist': {
    request: ['GET', `${GADGETS}/nope`],
    code: 404,
    reason: 'NotFound',
    message: 'gadgets.golden.local "nope" not found',
    details: { name: 'nope', group: 'golden.local', kind: 'gadgets' },
  },
  'a core object that does not exist': {
    request: ['GET', '/api/v1/namespaces/golden/configmaps/nope'],
    code: 404,
    reason: 'NotFound',
    message: 'configmaps "nope" not found',
    details: { name: 'nope', kind: 'configmaps' },
  },
  'a namespace that does not exist': {
    request: [
      'POST',
      '/api/v1/namespaces/absent/configmaps',
      { body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } } },
    ],
    code: 404,
    reason: 'NotFound',
    message: 'namespaces "absent" not found',
  },
  'a name that exists': {
    request: ['POST', GADGETS, { body: aGadget('one') }],
    code: 409,
    reason: 'AlreadyExists',
    message: 'gadgets.golden.local "one" already exists',
  },
  'an update of an old revision': {
    request: ['PUT', one, { body: aGadget('one', { size: 4 }, { resourceVersion: '1' }) }],
    code: 409,
    reason: 'Conflict',
    message:
      'Operation cannot be fulfilled on gadgets.golden.local "one": the object has been modified; please apply your changes to the latest version and try again',
  },
  'a patch with an old revision': {
    request: ['PATCH', one, { body: { metadata: { resourceVersion: '1' } } }],
    code: 409,
    reason: 'Conflict',
    message: /the object has been modified/,
  },
  'an update without a revision': {
    request: ['PUT', one, { body: aGadget('one', { size: 4 }) }],
    code: 422,
    reason: 'Invalid',
    message:
      'gadgets.golden.local "one" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be specified for an update',
  },
  'an update with another uid': {
    request: ['PUT', one, { body: aGadget('one', { size: 4 }, { uid: '00000000-0000-0000-0000-000000000000' }) }],
    code: 409,
    reason: 'Conflict',
    message:
      /^Operation cannot be fulfilled on gadgets\.golden\.local "one": StorageError: invalid object, Code: 4, Key: \/registry\/golden\.local\/gadgets\/golden\/one, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: 00000000-0000-0000-0000-000000000000, UID in object meta: /,
  },
  'a patch of the uid': {
    request: ['PATCH', one, { body: { metadata: { uid: '00000000-0000-0000-0000-000000000000' } } }],
    code: 422,
    reason: 'Invalid',
    message: /metadata\.uid: Invalid value: "00000000-0000-0000-0000-000000000000": field is immutable/,
  },
  'a name that differs from the path': {
    request: ['PUT', one, { body: aGadget('two') }],
    code: 400,
    reason: 'BadRequest',
    message: 'the name of the object (two) does not match the name on the URL (one)',
  },
  'a namespace that differs from the path': {
    request: ['POST', GADGETS, { body: aGadget('x', { size: 1 }, { namespace: 'other' }) }],
    code: 400,
    reason: 'BadRequest',
    message: 'the namespace of the provided object does not match the namespace sent on the request',
  },
  'another API version in the body': {
    request: ['POST', GADGETS, { body: { ...aGadget('x'), apiVersion: 'golden.local/v2' } }],
    code: 400,
    reason: 'BadRequest',
    message: 'the API version in the data (golden.local/v2) does not match the expected API version (golden.local/v1)',
  },
  'a body without a kind': {
    request: ['POST', GADGETS, { body: { apiVersion: 'golden.local/v1' } }],
    code: 400,
    reason: 'BadRequest',
    message: /^Object 'Kind' is missing in /,
  },
  'a value over its maximum': {
    request: ['POST', GADGETS, { body: aGadget('bad', { size: 11 }) }],
    code: 422,
    reason: 'Invalid',
    message:
      'Gadget.golden.local "bad" is invalid: spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10',
    details: {
      name: 'bad',
      group: 'golden.local',
      kind: 'Gadget',
      causes: [
        {
          reason: 'FieldValueInvalid',
          message: 'Invalid value: 11: spec.size in body should be less than or equal to 10',
          field: 'spec.size',
        },
      ],
    },
  },
  'a value outside its enum': {
    request: ['POST', GADGETS, { body: aGadget('bad', { size: 1, color: 'pink' }) }],
    code: 422,
    reason: 'Invalid',
    message:
      'Gadget.golden.local "bad" is invalid: spec.color: Unsupported value: "pink": supported values: "red", "green", "blue"',
  },
  'a missing field': {
    request: ['POST', GADGETS, { body: aGadget('bad', {}) }],
    code: 422,
    reason: 'Invalid',
    message: 'Gadget.golden.local "bad" is invalid: spec.size: Required value',
  },
  'a wrong type': {
    request: ['POST', GADGETS, { body: aGadget('bad', { size: 'three' }) }],
    code: 422,
    reason: 'Invalid',
    message: /spec\.size: Invalid value: "string": spec\.size in body must be of type integer: "string"/,
  },
  'a bad name': {
    request: ['POST', GADGETS, { body: aGadget('Bad_Name') }],
    code: 422,
    reason: 'Invalid',
    message:
      /^Gadget\.golden\.local "Bad_Name" is invalid: metadata\.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain must consist of/,
  },
  'an empty name': {
    request: [
      'POST',
      GADGETS,
      { body: { apiVersion: 'golden.local/v1', kind: 'Gadget', metadata: {}, spec: { size: 1 } } },
    ],
    code: 422,
    reason: 'Invalid',
    message: 'Gadget.golden.local "" is invalid: metadata.name: Required value: name or generateName is required',
  },
  'a bad label value': {
    request: ['PATCH', one, { body: { metadata: { labels: { app: 'not valid!' } } } }],
    code: 422,
    reason: 'Invalid',
    message: /metadata\.labels: Invalid value: "not valid!": a valid label must be an empty string or consist of/,
  },
  'a label that is not a string': {
    request: ['PATCH', one, { body: { metadata: { labels: { app: 1 } } } }],
    code: 422,
    reason: 'Invalid',
    message:
      /^ "" is invalid: patch: Invalid value: "\{.*: json: cannot unmarshal number into Go struct field ObjectMeta\.metadata\.labels of type string/,
  },
  'an unknown field under Strict': {
    request: ['POST', `${GADGETS}?fieldValidation=Strict`, { body: aGadget('bad', { size: 1, bogus: 2 }) }],
    code: 400,
    reason: 'BadRequest',
    message: 'Gadget in version "v1" cannot be handled as a Gadget: strict decoding error: unknown field "spec.bogus"',
  },
  'a JSON patch whose test fails': {
    request: ['PATCH', one, jsonPatch([{ op: 'test', path: '/spec/size', value: 99 }])],
    code: 422,
    reason: 'Invalid',
    message: 'the server rejected our request due to an error in our request',
    details: {},
  },
  'a JSON patch that is not a list': {
    request: ['PATCH', one, jsonPatch({ op: 'remove' })],
    code: 400,
    reason: 'BadRequest',
    message: 'error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp',
  },
  'a JSON patch with too many operations': {
    request: [
      'PATCH',
      one,
      jsonPatch(Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/spec/size', value: 3 }))),
    ],
    code: 413,
    reason: 'RequestEntityTooLarge',
    message: 'The allowed maximum operations in a JSON patch is 10000, got 10001',
  },
  'a strategic patch of a custom resource': {
    request: ['PATCH', one, { body: {}, contentType: 'application/strategic-merge-patch+json' }],
    code: 415,
    reason: 'UnsupportedMediaType',
    message:
      /^the body of the request was in an unknown format - accepted media types include: application\/json-patch\+json, application\/merge-patch\+json/,
  },
  'an unsupported representation': {
    request: ['GET', one, { accept: 'application/vnd.kubernetes.protobuf' }],
    code: 406,
    reason: 'NotAcceptable',
    message: /^only the following media types are accepted: application\/json, application\/yaml/,
  },
  'a user without permissions': {
    request: ['GET', GADGETS, { user: MALLORY }],
    code: 403,
    reason: 'Forbidden',
    message:
      'gadgets.golden.local is forbidden: User "mallory" cannot list resource "gadgets" in API group "golden.local" in the namespace "golden"',
    details: { group: 'golden.local', kind: 'gadgets' },
  },
  'an anonymous user': {
    request: ['GET', GADGETS, { user: { name: 'system:anonymous', groups: ['system:unauthenticated'] } }],
    code: 403,
    reason: 'Forbidden',
    message: /User "system:anonymous" cannot list resource "gadgets"/,
  },
  'metrics for a user without permissions': {
    request: ['GET', '/metrics', { user: MALLORY }],
    code: 403,
    reason: 'Forbidden',
    message: 'forbidden: User "mallory" cannot get path "/metrics"',
  },
  'a bad label selector': {
    request: ['GET', `${GADGETS}?labelSelector=a%3D%3D%3Db`],
    code: 400,
    reason: 'BadRequest',
    message: "unable to parse requirement: found '=', expected: identifier",
  },
  'a field that cannot be selected': {
    request: ['GET', `${GADGETS}?fieldSelector=spec.size%3D3`],
    code: 400,
    reason: 'BadRequest',
    message: 'field label not supported: spec.size',
  },
  'a continue token that is invalid': {
    request: ['GET', `${GADGETS}?limit=1&continue=nonsense`],
    code: 400,
    reason: 'BadRequest',
    message: /continue key is not valid/,
  },
  'resourceVersionMatch without a version': {
    request: ['GET', `${GADGETS}?resourceVersionMatch=Exact`],
    code: 422,
    reason: 'Invalid',
    message:
      'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
  },
  'an invalid timeout': {
    request: ['GET', `${GADGETS}?timeout=abc`],
    code: 400,
    reason: 'BadRequest',
    message: 'invalid timeout specified in the request URL - time: invalid duration "abc"',
  },
  'an invalid dry run': {
    request: ['POST', `${GADGETS}?dryRun=Some`, { body: aGadget('x') }],
    code: 422,
    reason: 'Invalid',
    message:
      'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: []string{"Some"}: supported values: "All"',
  },
  'an invalid field validation': {
    request: ['POST', `${GADGETS}?fieldValidation=Nope`, { body: aGadget('x') }],
    code: 422,
    reason: 'Invalid',
    message:
      'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Nope": supported values: "", "Ignore", "Strict", "Warn"',
  },
  'an invalid propagation policy': {
    request: ['DELETE', `${one}?propagationPolicy=Nope`],
    code: 422,
    reason: 'Invalid',
    message:
      'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Nope": supported values: "Foreground", "Background", "Orphan", "nil"',
  },
  'a delete with another uid': {
    request: ['DELETE', one, { body: { preconditions: { uid: '00000000-0000-0000-0000-000000000000' } } }],
    code: 409,
    reason: 'Conflict',
    message:
      /^Operation cannot be fulfilled on Gadget\.golden\.local "one": the UID in the precondition \(00000000-0000-0000-0000-000000000000\) does not match the UID in record \([-0-9a-f]{36}\)\. The object might have been deleted and then recreated$/,
    details: { name: 'one', group: 'golden.local', kind: 'Gadget' },
  },
  'a delete with another revision': {
    request: ['DELETE', one, { body: { preconditions: { resourceVersion: '1' } } }],
    code: 409,
    reason: 'Conflict',
    message:
      /the ResourceVersion in the precondition \(1\) does not match the ResourceVersion in record \(\d+\)\. The object might have been modified$/,
  },
  'a method that the resource does not support': {
    request: ['PUT', '/api/v1/namespaces/golden/configmaps', { body: {} }],
    code: 405,
    reason: 'MethodNotAllowed',
    message: 'the server does not allow this method on the requested resource',
    details: {},
  },
  'invalid JSON': {
    request: ['POST', '/api/v1/namespaces/golden/configmaps', { body: '{nope}' }],
    code: 400,
    reason: 'BadRequest',
    message:
      /^the object provided is unrecognized \(must be of type ConfigMap\): couldn't get version\/kind; json parse error: /,
  },
  'JSON that is nested too deeply': {
    request: ['POST', GADGETS, { body: deep(5000) }],
    code: 400,
    reason: 'BadRequest',
    message: /nested too deeply/,
  },
  'an object that is too large for the store': {
    request: ['POST', GADGETS, { body: aGadget('huge', { size: 1, note: 'x'.repeat(1_600_000) }) }],
    code: 413,
    reason: 'RequestEntityTooLarge',
    message: /^Request entity too large: the object has 16\d{5} bytes; the limit is 1572864$/,
  },
  'a definition with a wrong name': {
    request: ['POST', CRDS, { body: { ...gadgetCrd(), metadata: { name: 'wrong.golden.local' } } }],
    code: 422,
    reason: 'Invalid',
    message: /metadata\.name: Invalid value: "wrong\.golden\.local": must be spec\.names\.plural\+"\."\+spec\.group/,
  },
  'the deletion of a system namespace': {
    request: ['DELETE', '/api/v1/namespaces/kube-system'],
    code: 403,
    reason: 'Forbidden',
    message: 'namespaces "kube-system" is forbidden: this namespace may not be deleted',
  },
};

for (const [name, { request, code, reason, message, details }] of Object.entries(cases)) {
  test(`refuses ${name}`, async () => {
    const before = api.store.revision;
    const { status, body } = await api.call(...request);
    assert.equal(body.kind, 'Status', JSON.stringify(body));
    if (typeof message === 'string') assert.equal(body.message, message);
    else assert.match(body.message, message);
    assert.deepEqual([status, body.code, body.reason, body.status], [code, code, reason, 'Failure']);
    if (details !== undefined) assert.deepEqual(body.details, details);
    assert.equal(api.store.revision, before, 'a refused request writes nothing');
  });
}

for (const path of [
  '/api/v1/namespaces/golden/widgets',
  '/apis/none.example/v1/widgets',
  '/apis/none.example',
  `${GADGETS}/one/log`,
  '/api/v1/namespaces//configmaps',
  '/api/v1/namespaces/golden/nodes',
  '/nothing',
]) {
  test(`${path} does not exist`, async () => {
    const { status, text } = await api.call('GET', path);
    assert.deepEqual([status, text], [404, '404 page not found\n']);
  });
}

test('__proto__ in a body has no effect', async () => {
  const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"proto"},"data":{"__proto__":{"polluted":"yes"},"\\u005f_proto__":"x","a":"b"}}`;
  const created = await api.ok('POST', '/api/v1/namespaces/golden/configmaps', { body });
  assert.deepEqual(created.data, { a: 'b' });
  await api.call('PATCH', '/api/v1/namespaces/golden/configmaps/proto', {
    body: '{"data":{"__proto__":{"polluted":"yes"}}}',
  });
  await api.call(
    'PATCH',
    '/api/v1/namespaces/golden/configmaps/proto',
    jsonPatch([{ op: 'add', path: '/data/__proto__/polluted', value: 'yes' }]),
  );
  assert.equal(({} as Loose).polluted, undefined);
});

/** Versions of a custom kind that a webhook converts: in this process, over HTTPS, and when it fails. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { LocalServices } from '#engine/remote/local-services.ts';
import { gadgetCrd, installCrd } from '#test/support/gadgets.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';
import {
  jsonPatch,
  buildReviewAnswer,
  sendJson,
  startWebhookServer,
  type WebhookServer,
} from '#test/support/webhook-server.ts';

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const V1 = '/apis/golden.local/v1/namespaces/golden/gadgets';
const V2 = '/apis/golden.local/v2/namespaces/golden/gadgets';

let api: TestApi;
let server: WebhookServer;
/** The reviews of the webhook in this process, and what it does instead of converting. */
const reviews: Loose[] = [];
let misbehave: ((review: Loose) => Loose) | undefined;

before(async () => {
  const services = new LocalServices();
  services.register('golden', 'converter', {
    async review(path, review) {
      if (path.startsWith('/mutate')) return addSizeNote(review);
      reviews.push({ path, ...(review as Loose) });
      return misbehave?.(review) ?? answerTo(review);
    },
  });
  api = await startTestApi({ services });
  server = await startWebhookServer();
  server.misbehave('/convert', (response, _socket, review) => sendJson(response, answerTo(review)));
  await api.ok('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'golden' } },
  });
  await installCrd(api, versionedCrd({ service: { namespace: 'golden', name: 'converter', path: '/convert' } }));
  await api.settle();
});
after(async () => {
  await server.stop();
  await api.stop();
});

/** A kind whose v1 has `size` and whose v2 has `dimensions.width`. */
function versionedCrd(clientConfig: Loose): Loose {
  const crd = gadgetCrd();
  const [v1] = crd.spec.versions;
  v1.selectableFields = [];
  v1.subresources.scale = { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' };
  const v2 = structuredClone(v1);
  Object.assign(v2, { name: 'v2', storage: false, additionalPrinterColumns: [] });
  delete v2.subresources.scale;
  v2.selectableFields = [{ jsonPath: '.spec.unit' }];
  v2.schema.openAPIV3Schema.properties.spec = {
    type: 'object',
    required: ['dimensions'],
    properties: {
      dimensions: { type: 'object', properties: { width: { type: 'integer', maximum: 10 } } },
      unit: { type: 'string' },
    },
  };
  crd.spec.versions = [v1, v2];
  crd.spec.conversion = { strategy: 'Webhook', webhook: { clientConfig, conversionReviewVersions: ['v1', 'v1beta1'] } };
  return crd;
}

function convert(object: Loose, desired: string): Loose {
  const { spec } = object;
  const { conversions = '0' } = object.metadata.annotations ?? {};
  const converted = structuredClone(object);
  converted.apiVersion = desired;
  converted.metadata.labels = { ...object.metadata.labels, shown: desired.slice(desired.indexOf('/') + 1) };
  converted.metadata.annotations = { conversions: String(Number(conversions) + 1) };
  converted.metadata.finalizers = ['nobody/asked'];
  converted.spec =
    desired === 'golden.local/v2'
      ? { dimensions: { width: spec.size }, unit: spec.note ?? 'cm', strange: true }
      : { size: spec.dimensions.width, note: spec.unit };
  return converted;
}

function answerTo(review: Loose, response: Loose = {}): Loose {
  const { uid, objects, desiredAPIVersion } = review.request;
  return {
    kind: 'ConversionReview',
    apiVersion: review.apiVersion,
    response: {
      uid,
      result: { status: 'Success' },
      convertedObjects: objects.map((object: Loose) => convert(object, desiredAPIVersion)),
      ...response,
    },
  };
}

/** A mutating webhook that knows v1 only. */
function addSizeNote(review: Loose): Loose {
  const { size } = review.request.object.spec;
  return buildReviewAnswer(review, jsonPatch({ op: 'add', path: '/spec/note', value: `size ${size}` }));
}

const v1 = (name: string, size: number): Loose => ({
  apiVersion: 'golden.local/v1',
  kind: 'Gadget',
  metadata: { name },
  spec: { size },
});

test('an object written in one version is read in the other', async () => {
  await api.ok('POST', V1, { body: v1('one', 4) });
  assert.equal(reviews.length, 0);
  const read = await api.ok('GET', `${V2}/one`);
  assert.equal(read.apiVersion, 'golden.local/v2');
  // Pruned by the requested version. The webhook may change only labels and annotations of the metadata.
  assert.deepEqual(read.spec, { dimensions: { width: 4 }, unit: 'cm' });
  assert.deepEqual([read.metadata.labels, read.metadata.finalizers], [{ shown: 'v2' }, undefined]);
  assert.deepEqual(
    [reviews[0].path, reviews[0].kind, reviews[0].apiVersion, reviews[0].request.desiredAPIVersion],
    ['/convert?timeout=30s', 'ConversionReview', 'apiextensions.k8s.io/v1', 'golden.local/v2'],
  );
  assert.equal((await api.ok('GET', `${V1}/one`)).metadata.labels, undefined);
});

test('an object written in the other version is stored in the storage version', async () => {
  const body = {
    apiVersion: 'golden.local/v2',
    kind: 'Gadget',
    metadata: { name: 'two' },
    spec: { dimensions: { width: 7 }, unit: 'mm' },
  };
  const created = await api.ok('POST', V2, { body });
  assert.deepEqual(created.spec, { dimensions: { width: 7 }, unit: 'mm' });
  const stored = await api.ok('GET', `${V1}/two`);
  // With the defaults of the storage version.
  assert.deepEqual(stored.spec, { size: 7, note: 'mm', mode: 'auto' });
  assert.deepEqual(
    [stored.apiVersion, stored.metadata.resourceVersion],
    ['golden.local/v1', created.metadata.resourceVersion],
  );

  const patched = await api.ok('PATCH', `${V2}/two`, { body: { spec: { unit: 'm' } } });
  assert.deepEqual([patched.spec.unit, patched.metadata.generation], ['m', 2]);
  assert.equal((await api.ok('GET', `${V1}/two`)).spec.note, 'm');
  const refused = await api.call('PATCH', `${V2}/two`, { body: { spec: { dimensions: { width: 70 } } } });
  assert.equal(refused.status, 422, refused.text);
  const dry = await api.ok('PATCH', `${V2}/two?dryRun=All`, { body: { spec: { unit: 'km' } } });
  assert.deepEqual([dry.spec.unit, (await api.ok('GET', `${V1}/two`)).spec.note], ['km', 'm']);
});

test('a list is converted in one review, once, and selected by the converted fields', async () => {
  for (const [name, size] of [
    ['a', 1],
    ['b', 2],
    ['c', 3],
  ] as const)
    await api.ok('POST', V1, { body: v1(name, size) });
  const before = reviews.length;
  const { items } = await api.ok('GET', V2);
  assert.deepEqual(
    items.map(({ metadata, spec }: Loose) => [metadata.name, spec.dimensions.width]),
    [
      ['a', 1],
      ['b', 2],
      ['c', 3],
      ['one', 4],
      ['two', 7],
    ],
  );
  assert.equal(reviews.length, before + 1);
  const selected = await api.ok('GET', `${V2}?labelSelector=shown=v2&fieldSelector=spec.unit=m`);
  assert.deepEqual(
    selected.items.map(({ metadata }: Loose) => metadata.name),
    ['two'],
  );
  assert.equal(reviews.length, before + 1);
  const table = await api.ok('GET', V2, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' });
  assert.equal(table.rows.length, 5);
});

test('a watch delivers the requested version, in order', async () => {
  const watch = await api.watch(`${V2}?watch=1`);
  const initial = await watch.awaitEvents(5);
  assert.deepEqual(
    initial.map(({ object }) => object.apiVersion),
    Array(5).fill('golden.local/v2'),
  );
  await api.ok('PATCH', `${V1}/a`, { body: { spec: { size: 5 } } });
  await api.ok('PATCH', `${V1}/a`, { body: { spec: { size: 6 } } });
  await api.ok('DELETE', `${V1}/b`);
  const events = (await watch.awaitEvents(8)).slice(5);
  assert.deepEqual(
    events.map(({ type, object }) => [type, object.metadata.name, object.spec.dimensions.width]),
    [
      ['MODIFIED', 'a', 5],
      ['MODIFIED', 'a', 6],
      ['DELETED', 'b', 2],
    ],
  );
  watch.stop();
});

test('an object can be deleted in any version, and scaled in the version that has a scale', async () => {
  const scale = await api.ok('GET', `${V1}/c/scale`);
  assert.equal(scale.spec.replicas, 3);
  await api.ok('DELETE', `${V2}/c`);
  assert.equal((await api.call('GET', `${V1}/c`)).status, 404);
});

test('a policy for one version evaluates objects of the other version in its own', async () => {
  const policies = '/apis/admissionregistration.k8s.io/v1';
  await api.ok('POST', `${policies}/validatingadmissionpolicies`, {
    body: {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: 'small' },
      spec: {
        matchConstraints: {
          resourceRules: [
            { apiGroups: ['golden.local'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['gadgets'] },
          ],
        },
        validations: [{ expression: 'object.spec.size < 8', message: 'too large' }],
      },
    },
  });
  await api.ok('POST', `${policies}/validatingadmissionpolicybindings`, {
    body: {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: 'small' },
      spec: { policyName: 'small', validationActions: ['Deny'] },
    },
  });
  await api.settle();
  const v2 = (name: string, width: number): Loose => ({
    apiVersion: 'golden.local/v2',
    kind: 'Gadget',
    metadata: { name },
    spec: { dimensions: { width } },
  });
  const refused = await api.call('POST', `${V2}?dryRun=All`, { body: v2('large', 9) });
  assert.equal(refused.status, 422, refused.text);
  assert.match(refused.body.message, /too large$/);
  assert.equal((await api.call('POST', `${V2}?dryRun=All`, { body: v2('fine', 7) })).status, 201);
});

test('a webhook for one version changes objects of the other version in its own', async () => {
  const path = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
  const webhook = {
    name: 'note.golden.local',
    clientConfig: { service: { namespace: 'golden', name: 'converter', path: '/mutate' } },
    rules: [{ apiGroups: ['golden.local'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['gadgets'] }],
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
  };
  const body = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name: 'note' },
    webhooks: [webhook],
  };
  await api.ok('POST', path, { body });
  await api.settle();
  const object = {
    apiVersion: 'golden.local/v2',
    kind: 'Gadget',
    metadata: { name: 'noted' },
    spec: { dimensions: { width: 6 } },
  };
  const made = await api.ok('POST', `${V2}?dryRun=All`, { body: object });
  assert.deepEqual(made.spec, { dimensions: { width: 6 }, unit: 'size 6' });
  await api.ok('DELETE', `${path}/note`);
});

const failures: Record<string, { response: (review: Loose) => Loose; want: string }> = {
  refuses: {
    response: (review) => answerTo(review, { result: { status: 'Failure', message: 'no such unit' } }),
    want: 'conversion webhook for golden.local/v1, Kind=Gadget failed: no such unit',
  },
  'answers another request': {
    response: (review) => answerTo(review, { uid: 'x' }),
    want: 'conversion webhook for golden.local/v1, Kind=Gadget failed: expected response.uid=',
  },
  'returns no objects': {
    response: ({ apiVersion }) => ({ apiVersion, kind: 'ConversionReview' }),
    want: 'conversion webhook for golden.local/v1, Kind=Gadget failed: no response provided',
  },
  'omits an object': {
    response: (review) => answerTo(review, { convertedObjects: [] }),
    want: 'conversion webhook for golden.local/v1, Kind=Gadget returned 0 objects, expected 1',
  },
  'converts to another version': {
    response: (review) => answerTo(review, { convertedObjects: review.request.objects }),
    want: 'conversion webhook for golden.local/v1, Kind=Gadget returned invalid object at index 0: invalid groupVersion (expected golden.local/v2, received golden.local/v1)',
  },
  'changes the name': {
    response: (review) => {
      const answer = answerTo(review);
      answer.response.convertedObjects[0].metadata.name = 'other';
      return answer;
    },
    want: 'conversion webhook for golden.local/v1, Kind=Gadget returned invalid object: must have the same name: bad != other',
  },
  throws: {
    response: () => {
      throw new Error('broken');
    },
    want: 'conversion webhook for golden.local/v1, Kind=Gadget failed: broken',
  },
};

test('a failing webhook is reported, and affects only requests that need a conversion', async () => {
  await api.ok('POST', V1, { body: v1('bad', 2) });
  for (const [name, { response, want }] of Object.entries(failures)) {
    misbehave = response;
    const { status, body } = await api.call('GET', `${V2}/bad`);
    assert.equal(status, 500, name);
    assert.ok(body.message.startsWith(want), `${name}: ${body.message}`);
    assert.equal(body.reason, undefined);
  }
  const watch = await api.watch(`${V2}?watch=1&fieldSelector=metadata.name=bad`);
  const [event] = await watch.awaitEvents(1);
  assert.deepEqual([event!.type, event!.object.code], ['ERROR', 500]);
  await watch.ended;
  assert.equal((await api.call('PATCH', `${V1}/bad`, { body: { spec: { size: 3 } } })).status, 200);
  misbehave = undefined;
  assert.equal((await api.ok('GET', `${V2}/bad`)).spec.dimensions.width, 3);
});

test('objects in the old version are converted after the storage version changes, until they are written again', async () => {
  const path = `${CRDS}/gadgets.golden.local`;
  const crd = await api.ok('GET', path);
  for (const version of crd.spec.versions) version.storage = version.name === 'v2';
  crd.spec.conversion.webhook.clientConfig = { url: `${server.url}/convert`, caBundle: server.caBundle };
  const changed = await api.ok('PUT', path, { body: crd });
  assert.deepEqual(changed.status.storedVersions, ['v1', 'v2']);
  await api.settle();

  // Over HTTPS from now on.
  const read = await api.ok('GET', `${V2}/two`);
  assert.deepEqual([read.apiVersion, read.spec.dimensions.width], ['golden.local/v2', 7]);
  assert.equal(server.reviews.length, 1);
  assert.deepEqual((await api.ok('GET', `${V1}/two`)).spec, { size: 7, note: 'm', mode: 'auto' });
  assert.equal(server.reviews.length, 1);

  // An update without changes writes the object in the new version.
  const rewritten = await api.ok('PUT', `${V2}/two`, { body: read });
  assert.notEqual(rewritten.metadata.resourceVersion, read.metadata.resourceVersion);
  const rewrittenAgain = await api.ok('PUT', `${V2}/two`, { body: rewritten });
  assert.equal(rewrittenAgain.metadata.resourceVersion, rewritten.metadata.resourceVersion);
  const asksBefore = server.reviews.length;
  await api.ok('GET', `${V2}/two`);
  assert.equal(server.reviews.length, asksBefore);

  const refusal = await api.call('PATCH', path, { body: { spec: { versions: [crd.spec.versions[1]] } } });
  assert.equal(refusal.status, 422);
  assert.match(refusal.body.message, /status\.storedVersions\[0\]: Invalid value: "v1": must appear in spec\.versions/);
});

test('an object stored in a version that was declared migrated is still readable', async () => {
  const path = `${CRDS}/gadgets.golden.local`;
  const body = { status: { storedVersions: ['v2'] } };
  const { status } = await api.ok('PATCH', `${path}/status`, { body });
  assert.deepEqual(status.storedVersions, ['v2']);
  await api.settle();
  // The object has not been written since it was stored as v1.
  assert.equal((await api.ok('GET', `${V2}/one`)).spec.dimensions.width, 4);
  assert.equal((await api.ok('GET', `${V1}/one`)).spec.size, 4);
});

const unreachable: Record<string, { clientConfig: () => Loose; want: RegExp }> = {
  'that does not listen': {
    clientConfig: () => ({ url: 'https://127.0.0.1:1/convert' }),
    want: /^conversion webhook for golden\.local\/v1, Kind=Gadget failed: Post "https:\/\/127\.0\.0\.1:1\/convert\?timeout=30s": dial tcp 127\.0\.0\.1:1: connect: connection refused$/,
  },
  'with an untrusted certificate': {
    clientConfig: () => ({ url: `${server.url}/convert` }),
    want: /failed: Post "https:\/\/127\.0\.0\.1:\d+\/convert\?timeout=30s": tls: failed to verify certificate: x509: certificate signed by unknown authority$/,
  },
  'that does not convert at this path': {
    clientConfig: () => ({ url: `${server.url}/elsewhere`, caBundle: server.caBundle }),
    want: /^conversion webhook for golden\.local\/v1, Kind=Gadget failed: the server could not find the requested resource$/,
  },
  'whose service does not exist': {
    clientConfig: () => ({ service: { namespace: 'golden', name: 'nobody' } }),
    want: /^conversion webhook for golden\.local\/v1, Kind=Gadget failed: Post "https:\/\/nobody\.golden\.svc:443\/\?timeout=30s": service "nobody" not found$/,
  },
};

for (const [name, { clientConfig, want }] of Object.entries(unreachable)) {
  test(`a webhook ${name} converts nothing`, async () => {
    const path = `${CRDS}/gadgets.golden.local`;
    const crd = await api.ok('GET', path);
    crd.spec.conversion.webhook.clientConfig = clientConfig();
    await api.ok('PUT', path, { body: crd });
    await api.settle();
    const { status, body } = await api.call('GET', `${V2}/one`);
    assert.equal(status, 500);
    assert.match(body.message, want);
    const list = await api.call('GET', V2);
    assert.match(list.body.message, /^conversion webhook for golden\.local\/v1, Kind=GadgetList failed: /);
    // Requests for the stored version need no conversion.
    assert.equal((await api.call('GET', `${V1}/one`)).status, 200);
  });
}

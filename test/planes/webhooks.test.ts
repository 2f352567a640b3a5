/** Admission webhooks through the whole core: real HTTPS, real configurations, responses of every kind. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import type { AuditRecord } from '#engine/audit/audit-record.ts';
import { LocalServices } from '#engine/remote/local-services.ts';
import { startTestApi, type TestResponse, type Loose, type TestApi } from '#test/support/test-api.ts';
import { jsonPatch, buildReviewAnswer, sendJson, startWebhookServer } from '#test/support/webhook-server.ts';
import type { Misbehaviour, Responder, WebhookServer } from '#test/support/webhook-server.ts';

const CONFIGS = '/apis/admissionregistration.k8s.io/v1';
const MAPS = '/api/v1/namespaces/golden/configmaps';
const DEAD = 'https://127.0.0.1:1/dead';

let api: TestApi;
let server: WebhookServer;
const clock = new FakeClock();
const services = new LocalServices();
const audits: AuditRecord[] = [];
const installed: string[] = [];

before(async () => {
  server = await startWebhookServer();
  // Controllers would write their own ConfigMaps, which the webhooks would see.
  api = await startTestApi({ clock, services, audit: (record) => void audits.push(record), controllers: false });
  await api.ok('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'golden', labels: { env: 'prod' } } },
  });
});
after(async () => {
  await api.stop();
  await server.stop();
});
afterEach(async () => {
  for (const path of installed.splice(0)) await api.ok('DELETE', path);
  await api.ok('DELETE', MAPS);
  server.reviews.length = 0;
  audits.length = 0;
});

type Kind = 'mutating' | 'validating';

/** A webhook at a path of the server, for ConfigMaps. */
function aWebhook(path: string, overrides: Loose = {}): Loose {
  return {
    name: `${path.slice(1)}.golden.local`,
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    clientConfig: { url: server.url + path, caBundle: server.caBundle },
    rules: [{ operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
    ...overrides,
  };
}

async function install(kind: Kind, webhooks: Loose[], name = 'config'): Promise<TestResponse> {
  const title = kind === 'mutating' ? 'MutatingWebhookConfiguration' : 'ValidatingWebhookConfiguration';
  const plural = `${CONFIGS}/${kind}webhookconfigurations`;
  const body = { apiVersion: 'admissionregistration.k8s.io/v1', kind: title, metadata: { name }, webhooks };
  const answer = await api.call('POST', plural, { body });
  if (answer.status === 201) installed.push(`${plural}/${name}`);
  return answer;
}

const aMap = (name = 'thing', fields: Loose = {}): Loose => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  ...fields,
  metadata: { name, ...fields.metadata },
});
const create = (fields?: Loose, query = '') => api.call('POST', MAPS + query, { body: aMap('thing', fields) });

/** Creates the map before the webhook is installed. */
const createBefore = (fields?: Loose) => api.ok('POST', MAPS, { body: aMap('thing', fields) });
const remove = () => api.call('DELETE', `${MAPS}/thing`);

interface Case {
  readonly kind?: Kind;
  readonly webhook?: Loose;
  readonly answer?: Responder;
  readonly misbehave?: Misbehaviour;
  readonly prepare?: () => Promise<unknown>;
  readonly request?: () => Promise<TestResponse>;
  readonly status: number;
  readonly message?: string | RegExp;
  readonly reason?: string;
  readonly warnings?: readonly string[];
  readonly annotations?: Record<string, string>;
  /** The number of calls; 1 by default. */
  readonly calls?: number;
  readonly body?: Loose;
}

const ignore = { failurePolicy: 'Ignore' };
const FAILED = 'Internal error occurred: failed calling webhook "hook.golden.local": ';
const OPEN = 'failed-open.validating.webhook.admission.k8s.io/round_0_index_0';
const post = () => `${FAILED}failed to call webhook: Post "${server.url}/hook?timeout=10s": `;

const cases: Record<string, Case> = {
  'a webhook that allows': { answer: () => ({}), status: 201 },
  'a webhook that denies with code, reason and message': {
    answer: () => ({ allowed: false, status: { code: 403, reason: 'Forbidden', message: 'not today' } }),
    status: 403,
    reason: 'Forbidden',
    message: 'admission webhook "hook.golden.local" denied the request: not today',
  },
  'a webhook that denies without a message': {
    answer: () => ({ allowed: false }),
    status: 400,
    message: 'admission webhook "hook.golden.local" denied the request without explanation',
  },
  'a mutating webhook may deny, too': {
    kind: 'mutating',
    answer: () => ({ allowed: false, status: { code: 409, message: 'no' } }),
    status: 409,
    message: 'admission webhook "hook.golden.local" denied the request: no',
  },
  'warnings reach the client': { answer: () => ({ warnings: ['old', 'odd'] }), status: 201, warnings: ['old', 'odd'] },
  'warnings reach the client of a refused request': {
    answer: () => ({ allowed: false, warnings: ['old'] }),
    status: 400,
    warnings: ['old'],
  },
  'audit annotations are prefixed with the name of the webhook': {
    answer: () => ({ auditAnnotations: { seen: 'yes', 'not a key': 'no' } }),
    status: 201,
    annotations: { 'hook.golden.local/seen': 'yes' },
  },
  'a patch is part of the stored object': {
    kind: 'mutating',
    answer: () => jsonPatch({ op: 'add', path: '/data', value: { a: '1' } }),
    status: 201,
    body: { data: { a: '1' } },
    annotations: {
      'mutation.webhook.admission.k8s.io/round_0_index_0':
        '{"configuration":"config","webhook":"hook.golden.local","mutated":true}',
    },
  },
  'unknown fields that a patch adds are dropped': {
    kind: 'mutating',
    answer: () => jsonPatch({ op: 'add', path: '/nonsense', value: 1 }),
    status: 201,
    body: { nonsense: undefined },
  },
  'an invalid patch result is refused by validation': {
    kind: 'mutating',
    answer: () => jsonPatch({ op: 'add', path: '/metadata/labels', value: { 'bad key!': 'x' } }),
    status: 422,
    reason: 'Invalid',
  },
  'a patch that does not apply': {
    kind: 'mutating',
    answer: () => jsonPatch({ op: 'remove', path: '/data/a' }),
    status: 500,
    reason: 'InternalError',
    message: /^Internal error occurred: remove operation does not apply/,
  },
  'a patch that does not apply is not a failed call': {
    kind: 'mutating',
    webhook: ignore,
    answer: () => jsonPatch({ op: 'remove', path: '/data/a' }),
    status: 500,
  },
  'a patch that changes the identity of the object': {
    kind: 'mutating',
    answer: () => jsonPatch({ op: 'replace', path: '/metadata/name', value: 'other' }),
    status: 500,
    message: /attempted to change metadata\.name/,
  },
  'a patch of a delete': {
    kind: 'mutating',
    prepare: createBefore,
    request: remove,
    answer: () => jsonPatch({ op: 'add', path: '/data', value: {} }),
    status: 500,
    message: /attempted to modify the object, which is not supported for this operation$/,
  },
  'a validating webhook that patches': {
    answer: () => jsonPatch({ op: 'add', path: '/data', value: {} }),
    status: 500,
    message: `${FAILED}received invalid webhook response: validating webhook may not return response.patch`,
  },
  'a wrong uid': {
    answer: () => ({ uid: 'another' }),
    status: 500,
    message: /received invalid webhook response: expected response\.uid="[0-9a-f-]+", got "another"$/,
  },
  'a wrong uid, ignored by failurePolicy': { webhook: ignore, answer: () => ({ uid: '' }), status: 201 },
  garbage: {
    misbehave: (response) => response.writeHead(200).end('<html>'),
    status: 500,
    message: `${FAILED}failed to call webhook: couldn't get version/kind; json parse error: invalid character '<' looking for beginning of value`,
  },
  'an error page': {
    misbehave: (response) => response.writeHead(500, { 'content-type': 'text/plain' }).end('oops'),
    status: 500,
    message: `${FAILED}failed to call webhook: an error on the server ("oops") has prevented the request from succeeding`,
  },
  'a server that does not listen': {
    webhook: { clientConfig: { url: DEAD } },
    status: 500,
    reason: 'InternalError',
    message: `${FAILED}failed to call webhook: Post "${DEAD}?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused`,
    calls: 0,
  },
  'a server that does not listen, ignored by failurePolicy': {
    webhook: { clientConfig: { url: DEAD }, ...ignore },
    status: 201,
    annotations: { [OPEN]: 'hook.golden.local' },
    calls: 0,
  },
  'a connection that is reset, ignored by failurePolicy': {
    webhook: ignore,
    misbehave: (_response, socket) => socket.destroy(),
    status: 201,
    annotations: { [OPEN]: 'hook.golden.local' },
  },
  'a dry run is visible to the webhook': {
    request: () => create({}, '?dryRun=All'),
    answer: ({ dryRun }) => ({ warnings: [`dryRun ${dryRun}`] }),
    status: 201,
    warnings: ['dryRun true'],
  },
  'a delete contains only the old object': {
    prepare: createBefore,
    request: remove,
    answer: ({ object, oldObject, operation, options }) => ({
      warnings: [`${operation} ${object} ${oldObject.metadata.name} ${options.kind}`],
    }),
    status: 200,
    warnings: ['DELETE null thing DeleteOptions'],
  },
  'a delete is refused': {
    prepare: createBefore,
    request: remove,
    answer: () => ({ allowed: false, status: { code: 403, reason: 'Forbidden', message: 'protected' } }),
    status: 403,
    reason: 'Forbidden',
    message: 'admission webhook "hook.golden.local" denied the request: protected',
  },
  'the namespace has the label': {
    webhook: { namespaceSelector: { matchLabels: { env: 'prod' } } },
    answer: () => ({ allowed: false }),
    status: 400,
  },
  'the namespace does not have the label': {
    webhook: { namespaceSelector: { matchLabels: { env: 'test' } } },
    answer: () => ({ allowed: false }),
    status: 201,
    calls: 0,
  },
  'the object has the label': {
    webhook: { objectSelector: { matchLabels: { guarded: 'yes' } } },
    request: () => create({ metadata: { labels: { guarded: 'yes' } } }),
    answer: () => ({ allowed: false }),
    status: 400,
  },
  'a labelled object is deleted': {
    webhook: { objectSelector: { matchLabels: { guarded: 'yes' } } },
    prepare: () => createBefore({ metadata: { labels: { guarded: 'yes' } } }),
    request: remove,
    answer: () => ({ allowed: false }),
    status: 400,
  },
  'an object without labels is deleted': {
    webhook: { objectSelector: { matchLabels: { guarded: 'yes' } } },
    prepare: createBefore,
    request: remove,
    answer: () => ({ allowed: false }),
    status: 200,
    calls: 0,
  },
  'a label that is removed still counts': {
    webhook: { objectSelector: { matchLabels: { guarded: 'yes' } } },
    prepare: () => createBefore({ metadata: { labels: { guarded: 'yes' } } }),
    request: () => api.call('PATCH', `${MAPS}/thing`, { body: { metadata: { labels: { guarded: null } } } }),
    answer: () => ({ allowed: false }),
    status: 400,
  },
  'another operation does not call the webhook': {
    webhook: { rules: [{ operations: ['DELETE'], apiGroups: [''], apiVersions: ['*'], resources: ['*'] }] },
    answer: () => ({ allowed: false }),
    status: 201,
    calls: 0,
  },
  'conditions that hold': {
    webhook: { matchConditions: [{ name: 'named', expression: "object.metadata.name == 'thing'" }] },
    answer: () => ({ allowed: false }),
    status: 400,
  },
  'conditions that do not hold': {
    webhook: {
      matchConditions: [
        { name: 'broken', expression: 'object.spec.absent == 1' },
        { name: 'named', expression: "request.name == 'other'" },
      ],
    },
    answer: () => ({ allowed: false }),
    status: 201,
    calls: 0,
  },
  'conditions can check permissions of the user': {
    webhook: {
      matchConditions: [{ name: 'may', expression: "authorizer.group('').resource('pods').check('get').allowed()" }],
    },
    answer: () => ({ allowed: false }),
    status: 400,
  },
  'a condition that fails': {
    webhook: { matchConditions: [{ name: 'broken', expression: 'object.spec.absent == 1' }] },
    answer: () => ({}),
    status: 403,
    reason: 'Forbidden',
    message:
      'configmaps "thing" is forbidden: expression \'object.spec.absent == 1\' resulted in error: no such key: spec',
    calls: 0,
  },
  'a condition that fails, ignored by failurePolicy': {
    webhook: { ...ignore, matchConditions: [{ name: 'broken', expression: 'object.spec.absent == 1' }] },
    answer: () => ({ allowed: false }),
    status: 201,
    calls: 0,
  },
};

for (const [name, wanted] of Object.entries(cases)) {
  test(`webhooks: ${name}`, async () => {
    const { kind = 'validating', calls = 1, request = create } = wanted;
    if (wanted.answer !== undefined) server.answer('/hook', wanted.answer);
    if (wanted.misbehave !== undefined) server.misbehave('/hook', wanted.misbehave);
    await wanted.prepare?.();
    await install(kind, [aWebhook('/hook', wanted.webhook)]);
    const { status, body, warnings } = await request();
    assert.equal(status, wanted.status, JSON.stringify(body));
    assert.equal(server.reviews.length, calls, 'calls');
    if (wanted.message instanceof RegExp) assert.match(body.message, wanted.message);
    else if (wanted.message !== undefined) assert.equal(body.message, wanted.message);
    if (wanted.reason !== undefined) assert.equal(body.reason, wanted.reason);
    assert.deepEqual(warnings, wanted.warnings ?? []);
    for (const [key, value] of Object.entries(wanted.annotations ?? {})) {
      assert.equal(audits.at(-1)?.annotations[key], value, key);
    }
    for (const [key, value] of Object.entries(wanted.body ?? {})) assert.deepEqual(body[key], value);
  });
}

for (const policy of ['Fail', 'Ignore']) {
  test(`webhooks: one that never answers ends at its deadline, failurePolicy ${policy}`, async () => {
    server.misbehave('/hook', () => {});
    await install('validating', [aWebhook('/hook', { failurePolicy: policy, timeoutSeconds: 3 })]);
    const answer = create();
    await server.awaitReviews(1);
    const plain = await api.call('GET', '/api/v1/namespaces/golden');
    assert.equal(plain.status, 200, 'other requests are served meanwhile');
    await clock.advance(3000);
    const { status, body } = await answer;
    assert.equal(status, policy === 'Fail' ? 500 : 201);
    if (policy === 'Fail') {
      assert.equal(body.message, `${post().replace('10s', '3s')}context deadline exceeded`);
    }
  });
}

test('webhooks: each gets the changes of those before it, and IfNeeded is called again', async () => {
  const add = (key: string) => (request: Loose) => {
    const value = String(Object.keys(request.object.data ?? {}).length);
    const at = request.object.data === undefined ? '/data' : `/data/${key}`;
    return jsonPatch({ op: 'add', path: at, value: at === '/data' ? { [key]: value } : value });
  };
  for (const key of ['a', 'b', 'c']) server.answer(`/${key}`, add(key));
  await install('mutating', [aWebhook('/c')], 'z-last');
  await install('mutating', [aWebhook('/a', { reinvocationPolicy: 'IfNeeded' }), aWebhook('/b')], 'a-first');
  const { body } = await create();
  assert.deepEqual(
    server.reviews.map(({ path }) => path.split('?')[0]),
    ['/a', '/b', '/c', '/a'],
  );
  assert.deepEqual(body.data, { a: '3', b: '1', c: '2' });
});

test('webhooks: IfNeeded is not called again for its own change, nor without a change', async () => {
  server.answer('/a', () => jsonPatch({ op: 'add', path: '/data', value: { a: '1' } }));
  server.answer('/b', () => ({}));
  const reinvocationPolicy = 'IfNeeded';
  await install('mutating', [aWebhook('/a', { reinvocationPolicy }), aWebhook('/b', { reinvocationPolicy })]);
  await create();
  assert.deepEqual(
    server.reviews.map(({ path }) => path.split('?')[0]),
    ['/a', '/b'],
  );
});

test('webhooks: validating ones are called at the same time, and the first refusal in their order counts', async () => {
  const answers: (() => void)[] = [];
  for (const key of ['a', 'b']) {
    server.misbehave(`/${key}`, (response, _socket, review) => {
      const refusal = buildReviewAnswer(review, {
        allowed: false,
        status: { code: 403, message: key },
        warnings: [key],
      });
      answers.push(() => sendJson(response, refusal));
    });
  }
  await install('validating', [aWebhook('/a'), aWebhook('/b')]);
  const answer = create();
  await server.awaitReviews(2);
  for (const send of answers.reverse()) send();
  const { body, warnings } = await answer;
  assert.equal(body.message, 'admission webhook "a.golden.local" denied the request: a');
  assert.deepEqual(warnings.toSorted(), ['a', 'b']);
});

test('webhooks: a configuration takes effect, and ends, at once', async () => {
  server.answer('/hook', () => ({ allowed: false }));
  await install('validating', [aWebhook('/hook')]);
  assert.equal((await create()).status, 400);
  await api.ok('DELETE', installed.pop()!);
  assert.equal((await create()).status, 201);
});

test('webhooks: none is called for webhook configurations', async () => {
  server.answer('/hook', () => ({ allowed: false }));
  const rules = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] }];
  await install('validating', [aWebhook('/hook', { rules })]);
  assert.equal((await install('mutating', [aWebhook('/hook', { rules })])).status, 201);
  assert.equal((await create()).status, 400);
  for (const path of installed.splice(0)) assert.equal((await api.call('DELETE', path)).status, 200);
});

test('webhooks: a service in this process gets the same review', async () => {
  const seen: Loose[] = [];
  const unregister = services.register('golden', 'inside', {
    review: async (path, review) => {
      seen.push([path, review]);
      return buildReviewAnswer(review, jsonPatch({ op: 'add', path: '/data', value: { from: 'inside' } }));
    },
  });
  const clientConfig = { service: { namespace: 'golden', name: 'inside', path: '/mutate' } };
  await install('mutating', [aWebhook('/hook', { clientConfig })]);
  const { body } = await create();
  assert.deepEqual(body.data, { from: 'inside' });
  assert.equal(seen[0][0], '/mutate?timeout=10s');
  assert.equal(seen[0][1].request.object.metadata.name, 'thing');
  unregister();
  const { body: refused } = await api.call('PUT', `${MAPS}/thing`, { body: aMap() });
  assert.match(refused.message, /inside\.golden\.svc:443\/mutate\?timeout=10s": service "inside" not found$/);
});

const impossible: Record<string, { expression: string; want: string }> = {
  'a syntax error': {
    expression: 'object.(',
    want: 'compilation failed: ERROR: <input>:1:8: Syntax error',
  },
  'an unknown name': {
    expression: 'params.x',
    want: "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')",
  },
  'a result that is not boolean': { expression: '1', want: 'must evaluate to bool but got int' },
};
for (const [name, { expression, want }] of Object.entries(impossible)) {
  test(`webhooks: an invalid expression is refused when it is written: ${name}`, async () => {
    const { status, body } = await install('validating', [
      aWebhook('/hook', { matchConditions: [{ name: 'x', expression }] }),
    ]);
    assert.equal(status, 422);
    const [cause] = body.details.causes;
    assert.equal(cause.field, 'webhooks[0].matchConditions[0].expression');
    assert.ok(cause.message.startsWith(`Invalid value: ${JSON.stringify(expression)}: ${want}`), cause.message);
  });
}

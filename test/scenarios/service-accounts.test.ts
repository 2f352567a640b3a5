/** Service accounts through the whole API: default accounts, and tokens that are requested and used. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createAuthenticator } from '#engine/auth/authenticate.ts';
import { tokenLookup } from '#engine/auth/tokens.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { Store } from '#engine/store/store.ts';
import { systemClock, timestamp } from '#lib/clock.ts';
import { startTestApi, TEST_CA, type Loose } from '#test/support/test-api.ts';

const API = 'https://kubernetes.default.svc';
const CORE = '/api/v1/namespaces/team';

async function startScene() {
  let aheadMs = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
  const statics = tokenLookup([{ token: 's3cret', user: { name: 'jane', groups: [] } }]);
  const audited: Readonly<Record<string, string>>[] = [];
  const api = await startTestApi({
    clock,
    tokens: statics,
    audit: ({ annotations }) => void audited.push(annotations),
  });
  const authenticate = createAuthenticator({ tokens: api.core.tokens });
  return {
    ...api,
    audited,
    call: (method: string, url: string, body?: unknown, contentType?: string) =>
      api.call(method, url, { body, contentType }),
    ok: (method: string, url: string, body?: unknown, contentType?: string): Promise<Loose> =>
      api.ok(method, url, { body, contentType }),
    /** Returns the user of the token, as the API sees it. */
    whoIs: (token: string) => authenticate({ authorization: `Bearer ${token}` }),
    now: () => clock.now(),
    advance(ms: number) {
      aheadMs += ms;
    },
  };
}

let scene: Awaited<ReturnType<typeof startScene>>;

before(async () => {
  scene = await startScene();
  await scene.ok('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } });
  // Pods need an account, and that of a new namespace is created a moment later.
  await awaitObject(scene.store, 'serviceaccounts', 'team/default', (object) => object !== undefined);
  await scene.ok('POST', `${CORE}/pods`, pod('other'));
});
after(() => scene.stop());

/** Resolves with the first state of an object that matches. */
function awaitObject(store: Store, collection: string, id: string, wanted: (object: Loose) => boolean): Promise<Loose> {
  return new Promise((resolve) => {
    const stop = store.watch({ collection, prefix: id, since: store.compactedRevision }, (events) => {
      for (const { type, entry } of events) {
        if (entry.id !== id) continue;
        const object: Loose = decodeStored(entry.bytes);
        if (wanted(type === 'delete' ? undefined : object)) setImmediate(() => (stop(), resolve(object)));
      }
    });
  });
}

const account = (name: string) => ({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } });
const pod = (name: string, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
});
const request = (spec?: object, metadata: object = {}) => ({
  apiVersion: 'authentication.k8s.io/v1',
  kind: 'TokenRequest',
  metadata,
  ...(spec === undefined ? {} : { spec }),
});
const requestToken = (name: string, spec?: object) =>
  scene.ok('POST', `${CORE}/serviceaccounts/${name}/token`, request(spec));

test('a new namespace gets its account and the CA, and a deleted account is created again', async () => {
  const { store } = scene;
  const first = await awaitObject(store, 'serviceaccounts', 'team/default', (object) => object !== undefined);
  const ca = await awaitObject(store, 'configmaps', 'team/kube-root-ca.crt', (object) => object !== undefined);
  assert.deepEqual(ca.data, { 'ca.crt': TEST_CA });
  const isNewAccount = (object: Loose) => object !== undefined && object.metadata.uid !== first.metadata.uid;
  const back = awaitObject(store, 'serviceaccounts', 'team/default', isNewAccount);
  await scene.ok('DELETE', `${CORE}/serviceaccounts/default`);
  await back;
});

test('a changed CA is corrected', async () => {
  const corrected = awaitObject(
    scene.store,
    'configmaps',
    'team/kube-root-ca.crt',
    (object) => object?.metadata.labels?.x,
  );
  const patch = { metadata: { labels: { x: 'y' } }, data: { 'ca.crt': 'EVIL', more: 'm' } };
  await scene.ok('PATCH', `${CORE}/configmaps/kube-root-ca.crt`, patch, 'application/merge-patch+json');
  await corrected;
  const isCorrected = (object: Loose) => object?.metadata.labels?.x && object.data['ca.crt'] === 'PEM';
  assert.deepEqual((await awaitObject(scene.store, 'configmaps', 'team/kube-root-ca.crt', isCorrected)).data, {
    'ca.crt': TEST_CA,
  });
});

test('a pod that is created right after its namespace finds its account', async () => {
  await scene.ok('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'fresh' } });
  const { spec } = await scene.ok('POST', '/api/v1/namespaces/fresh/pods', pod('p'));
  assert.equal(spec.serviceAccountName, 'default');
  assert.match(spec.volumes[0].name, /^kube-api-access-/);
});

test('a token identifies its account until the account is deleted', async () => {
  const { metadata } = await scene.ok('POST', `${CORE}/serviceaccounts`, account('robot'));
  const { kind, apiVersion, metadata: asked, spec, status } = await requestToken('robot');
  assert.deepEqual([kind, apiVersion], ['TokenRequest', 'authentication.k8s.io/v1']);
  assert.deepEqual([asked.name, asked.namespace], ['robot', 'team']);
  assert.deepEqual(spec, { audiences: [API], expirationSeconds: 3600, boundObjectRef: null });
  assert.equal(status.expirationTimestamp, timestamp(Date.parse(asked.creationTimestamp) + 3_600_000));
  const user = scene.whoIs(status.token);
  assert.deepEqual([user.name, user.uid], ['system:serviceaccount:team:robot', metadata.uid]);
  assert.deepEqual(user.groups, ['system:serviceaccounts', 'system:serviceaccounts:team', 'system:authenticated']);
  const id = user.extra?.['authentication.kubernetes.io/credential-id']?.[0];
  assert.deepEqual(scene.audited.at(-1), { 'authentication.kubernetes.io/issued-credential-id': id });

  await scene.ok('DELETE', `${CORE}/serviceaccounts/robot`);
  assert.throws(() => scene.whoIs(status.token), { code: 401 });
  await scene.ok('POST', `${CORE}/serviceaccounts`, account('robot'));
  assert.throws(() => scene.whoIs(status.token), { code: 401 }, 'a new account of the same name is a different one');
});

test('a static token stays valid, and unknown ones are refused', () => {
  assert.equal(scene.whoIs('s3cret').name, 'jane');
  for (const token of ['x', 'a.b.c', '..', 'x'.repeat(100_000)]) assert.throws(() => scene.whoIs(token), { code: 401 });
});

test('the bytes that kubectl create token sends are understood', async () => {
  const sent =
    'azhzAAooChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESDFRva2VuUmVxdWVzdBIaChAKABIAGgAiACoAMgA4AEIAEgAaBAoAEgAaACIA';
  const url = `${CORE}/serviceaccounts/default/token`;
  const { spec, status } = await scene.ok(
    'POST',
    url,
    Buffer.from(sent, 'base64'),
    'application/vnd.kubernetes.protobuf',
  );
  assert.deepEqual(spec, { audiences: [API], expirationSeconds: 3600, boundObjectRef: null });
  assert.equal(scene.whoIs(status.token).name, 'system:serviceaccount:team:default');
});

test('a token for a pod ends with the pod', async () => {
  const { metadata } = await scene.ok('POST', `${CORE}/pods`, pod('bound'));
  const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'bound', uid: metadata.uid };
  const { spec, status } = await requestToken('default', { boundObjectRef, expirationSeconds: 3607 });
  assert.deepEqual(spec.boundObjectRef, boundObjectRef);
  const { extra } = scene.whoIs(status.token);
  assert.deepEqual(extra?.['authentication.kubernetes.io/pod-uid'], [metadata.uid]);
  scene.advance(3_700_000);
  scene.whoIs(status.token);
  await scene.ok('DELETE', `${CORE}/pods/bound`);
  assert.throws(() => scene.whoIs(status.token), { code: 401 });
});

test('a token without a pod ends on time', async () => {
  const { status } = await requestToken('default', { expirationSeconds: 3607 });
  scene.advance(Date.parse(status.expirationTimestamp) - scene.now() - 2000);
  scene.whoIs(status.token);
  scene.advance(3000);
  assert.throws(() => scene.whoIs(status.token), { code: 401 });
});

test('a dry run is answered like a real request and stores nothing', async () => {
  const before = scene.store.revision;
  const { status } = await scene.ok('POST', `${CORE}/serviceaccounts/default/token?dryRun=All`, request());
  assert.equal(scene.whoIs(status.token).name, 'system:serviceaccount:team:default');
  assert.equal(scene.store.revision, before);
});

test('a secret for an account is filled, and deleted with the account', async () => {
  const { store, ok } = scene;
  await ok('POST', `${CORE}/serviceaccounts`, account('keeper'));
  const annotations = { 'kubernetes.io/service-account.name': 'keeper' };
  const type = 'kubernetes.io/service-account-token';
  await ok('POST', `${CORE}/secrets`, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'kept', annotations },
    type,
  });
  const { data, metadata } = await awaitObject(store, 'secrets', 'team/kept', (object) => object?.data?.token);
  const text = (key: string) => Buffer.from(data[key], 'base64').toString();
  assert.deepEqual([text('ca.crt'), text('namespace')], ['PEM', 'team']);
  assert.equal(scene.whoIs(text('token')).name, 'system:serviceaccount:team:keeper');
  assert.equal(metadata.annotations['kubernetes.io/service-account.uid'], scene.whoIs(text('token')).uid);
  const deleted = awaitObject(store, 'secrets', 'team/kept', (object) => object === undefined);
  await ok('DELETE', `${CORE}/serviceaccounts/keeper`);
  assert.throws(() => scene.whoIs(text('token')), { code: 401 });
  await deleted;
});

test('a secret without an account is deleted at once', async () => {
  const annotations = { 'kubernetes.io/service-account.name': 'nobody' };
  const secret = { metadata: { name: 'lost', annotations }, type: 'kubernetes.io/service-account-token' };
  const deleted = awaitObject(scene.store, 'secrets', 'team/lost', (object) => object === undefined);
  await scene.ok('POST', `${CORE}/secrets`, { apiVersion: 'v1', kind: 'Secret', ...secret });
  await deleted;
});

const podRef = { kind: 'Pod', apiVersion: 'v1', name: 'other' };

const refused: Record<string, { name?: string; body: Loose; code: number; reason: string; message: RegExp | string }> =
  {
    'an account that does not exist': {
      name: 'nobody',
      body: request(),
      code: 404,
      reason: 'NotFound',
      message: 'serviceaccounts "nobody" not found',
    },
    'another name': {
      body: request({}, { name: 'x' }),
      code: 422,
      reason: 'Invalid',
      message:
        'TokenRequest.authentication.k8s.io "default" is invalid: metadata.name: Invalid value: "x": must match the service account name if specified',
    },
    'another namespace': {
      body: request({}, { namespace: 'x' }),
      code: 400,
      reason: 'BadRequest',
      message: 'the namespace of the provided object does not match the namespace sent on the request',
    },
    'a lifetime that is too short': {
      body: request({ expirationSeconds: 599 }),
      code: 422,
      reason: 'Invalid',
      message:
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes',
    },
    'a lifetime that is too long': {
      body: request({ expirationSeconds: 2 ** 32 + 1 }),
      code: 422,
      reason: 'Invalid',
      message:
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds',
    },
    'another kind': {
      body: account('default'),
      code: 400,
      reason: 'BadRequest',
      message: /does not match the expected API version \(authentication.k8s.io\/v1\)/,
    },
    'a lifetime in words': {
      body: request({ expirationSeconds: 'long' }),
      code: 400,
      reason: 'BadRequest',
      message: /TokenRequest in version "v1" cannot be handled as a TokenRequest: json: cannot unmarshal string/,
    },
    'a pod that does not exist': {
      body: request({ boundObjectRef: { ...podRef, name: 'gone' } }),
      code: 404,
      reason: 'NotFound',
      message: 'pods "gone" not found',
    },
    'a pod of another account': {
      name: 'robot',
      body: request({ boundObjectRef: podRef }),
      code: 400,
      reason: 'BadRequest',
      message: 'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.',
    },
    'a pod with another uid': {
      body: request({ boundObjectRef: { ...podRef, uid: 'u1' } }),
      code: 409,
      reason: 'Conflict',
      message:
        'Operation cannot be fulfilled on Pod "other": the UID in the bound object reference (u1) does not match the UID in record. The object might have been deleted and then recreated',
    },
    'a secret that does not exist': {
      body: request({ boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name: 'gone' } }),
      code: 404,
      reason: 'NotFound',
      message: 'secrets "gone" not found',
    },
    'a node that does not exist': {
      body: request({ boundObjectRef: { kind: 'Node', apiVersion: 'v1', name: 'gone' } }),
      code: 404,
      reason: 'NotFound',
      message: 'nodes "gone" not found',
    },
    'a kind that tokens are not bound to': {
      body: request({ boundObjectRef: { kind: 'Deployment', apiVersion: 'apps/v1', name: 'd' } }),
      code: 400,
      reason: 'BadRequest',
      message: 'cannot bind token to object of type apps/v1, Kind=Deployment',
    },
    'a kind of the same name in another group': {
      body: request({ boundObjectRef: { kind: 'Pod', apiVersion: 'x.org/v1', name: 'other' } }),
      code: 400,
      reason: 'BadRequest',
      message: 'cannot bind token to object of type x.org/v1, Kind=Pod',
    },
    'an invalid kind': {
      body: request({ boundObjectRef: { kind: 'constructor', apiVersion: 'v1', name: 'd' } }),
      code: 400,
      reason: 'BadRequest',
      message: 'cannot bind token to object of type /v1, Kind=constructor',
    },
  };

for (const [why, { name = 'default', body, code, reason, message }] of Object.entries(refused)) {
  test(`refuses a token for ${why}`, async () => {
    const answer = await scene.call('POST', `${CORE}/serviceaccounts/${name}/token`, body);
    assert.deepEqual([answer.status, answer.body.reason], [code, reason], JSON.stringify(answer.body));
    if (typeof message === 'string') assert.equal(answer.body.message, message);
    else assert.match(answer.body.message, message);
  });
}

test('unknown fields are reported', async () => {
  const { warnings } = await scene.call('POST', `${CORE}/serviceaccounts/default/token`, request({ nonsense: 1 }));
  assert.deepEqual(warnings, ['unknown field "spec.nonsense"']);
});

test('tokens can only be created', async () => {
  assert.equal((await scene.call('GET', `${CORE}/serviceaccounts/default/token`)).status, 405);
});

test('a pod needs an account that exists', async () => {
  const { status, body } = await scene.call('POST', `${CORE}/pods`, pod('x', { serviceAccountName: 'nobody' }));
  assert.equal(status, 403);
  const reason = 'error looking up service account team/nobody: serviceaccount "nobody" not found';
  assert.equal(body.message, `pods "x" is forbidden: ${reason}`);
});

test('the fields that admission adds to pods cause no warnings', async () => {
  const { spec } = await scene.ok('POST', `${CORE}/pods?fieldValidation=Strict`, pod('mounting'));
  assert.equal(spec.containers[0].volumeMounts.length, 1);
  assert.equal(spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds, 3607);
});

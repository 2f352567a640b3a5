/** The verbs on a custom and on built-in kinds, as a client sees them. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { aGadget, GADGETS, installGadgets } from '#test/support/gadgets.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
const CONFIGMAPS = '/api/v1/namespaces/golden/configmaps';
const configMap = (name: string, data: Loose = {}, metadata: Loose = {}): Loose => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...metadata },
  data,
});

before(async () => {
  api = await startTestApi();
  await installGadgets(api);
});
after(() => api.stop());

describe('create', () => {
  test('sets server-side fields and defaults', async () => {
    const { status, body } = await api.call('POST', GADGETS, { body: aGadget('made') });
    assert.equal(status, 201);
    assert.match(body.metadata.uid, /^[-0-9a-f]{36}$/);
    assert.match(body.metadata.creationTimestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.equal(body.metadata.generation, 1);
    assert.equal(body.metadata.namespace, 'golden');
    assert.equal(body.metadata.resourceVersion, String(api.store.revision));
    assert.equal(body.spec.mode, 'auto');
    assert.deepEqual(await api.ok('GET', `${GADGETS}/made`), body);
  });

  test('drops a status from the client, and fields that only the server writes', async () => {
    const body = {
      ...aGadget('no-status', { size: 1 }, { uid: 'mine', generation: 7, deletionTimestamp: '2020-01-01T00:00:00Z' }),
      status: { a: 1 },
    };
    const made = await api.ok('POST', GADGETS, { body });
    assert.equal(made.status, undefined);
    assert.notEqual(made.metadata.uid, 'mine');
    assert.equal(made.metadata.generation, 1);
    assert.equal(made.metadata.deletionTimestamp, undefined);
  });

  test('warns about unknown fields and drops them', async () => {
    const { status, body, warnings } = await api.call('POST', GADGETS, {
      body: aGadget('warned', { size: 3, bogus: 1 }),
    });
    assert.equal(status, 201);
    assert.deepEqual(warnings, ['unknown field "spec.bogus"']);
    assert.equal(body.spec.bogus, undefined);
  });

  test('generates names', async () => {
    const body = { ...aGadget('x'), metadata: { generateName: 'gen-' } };
    const names = await Promise.all(
      Array.from({ length: 20 }, () => api.ok('POST', GADGETS, { body }).then((o) => o.metadata.name)),
    );
    assert.equal(new Set(names).size, 20);
    for (const name of names) assert.match(name, /^gen-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
  });

  test('a dry run checks everything and stores nothing', async () => {
    const before = api.store.revision;
    const { status, body } = await api.call('POST', `${GADGETS}?dryRun=All`, { body: aGadget('dry') });
    assert.equal(status, 201);
    assert.equal(body.metadata.resourceVersion, undefined);
    assert.equal((await api.call('POST', `${GADGETS}?dryRun=All`, { body: aGadget('dry', { size: 99 }) })).status, 422);
    assert.equal((await api.call('GET', `${GADGETS}/dry`)).status, 404);
    assert.equal(api.store.revision, before);
  });

  test('accepts and returns YAML', async () => {
    const body = 'apiVersion: golden.local/v1\nkind: Gadget\nmetadata: {name: yam}\nspec:\n  size: 1\n';
    const { status, text } = await api.call('POST', GADGETS, {
      body,
      contentType: 'application/yaml',
      accept: 'application/yaml',
    });
    assert.equal(status, 201);
    assert.match(text, /^apiVersion: golden\.local\/v1\nkind: Gadget\n/);
  });
});

describe('update and patch', () => {
  test('generation counts changes of the spec only', async () => {
    const url = `${GADGETS}/counted`;
    await api.ok('POST', GADGETS, { body: aGadget('counted') });
    const generation = async (body: Loose, to = url) => (await api.ok('PATCH', to, { body })).metadata.generation;
    assert.equal(await generation({ metadata: { labels: { a: 'b' } } }), 1);
    assert.equal(await generation({ spec: { size: 4 } }), 2);
    assert.equal(await generation({ status: { seen: true } }, `${url}/status`), 2);
  });

  test('a status write keeps the spec, and a spec write keeps the status', async () => {
    const url = `${GADGETS}/parts`;
    await api.ok('POST', GADGETS, { body: aGadget('parts') });
    const one = await api.ok('PATCH', `${url}/status`, {
      body: { spec: { size: 9 }, status: { phase: 'Up' }, metadata: { labels: { x: 'y' } } },
    });
    assert.deepEqual([one.spec.size, one.status, one.metadata.labels], [3, { phase: 'Up' }, undefined]);
    const two = await api.ok('PATCH', url, { body: { spec: { size: 5 }, status: { phase: 'Down' } } });
    assert.deepEqual([two.spec.size, two.status], [5, { phase: 'Up' }]);
    const three = await api.ok('PUT', `${url}/status`, {
      body: { ...two, spec: { size: 1 }, status: { phase: 'Gone' } },
    });
    assert.deepEqual([three.spec.size, three.status], [5, { phase: 'Gone' }]);
  });

  test('a request without changes writes nothing', async () => {
    await api.ok('POST', GADGETS, { body: aGadget('still', { size: 2 }, { labels: { a: 'b' } }) });
    const before = api.store.revision;
    const answer = await api.ok('PATCH', `${GADGETS}/still`, { body: { metadata: { labels: { a: 'b' } } } });
    await api.ok('PUT', `${GADGETS}/still`, { body: answer });
    assert.equal(api.store.revision, before);
    assert.equal(answer.metadata.resourceVersion, String(before));
  });

  test('concurrent patches of one object all take effect', async () => {
    await api.ok('POST', CONFIGMAPS, { body: configMap('busy') });
    await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        api.ok('PATCH', `${CONFIGMAPS}/busy`, { body: { data: { [`k${i}`]: 'v' } } }),
      ),
    );
    const { data } = await api.ok('GET', `${CONFIGMAPS}/busy`);
    assert.equal(Object.keys(data).length, 50);
  });

  test('of concurrent updates with a revision, one succeeds', async () => {
    const made = await api.ok('POST', CONFIGMAPS, { body: configMap('raced') });
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        api.call('PUT', `${CONFIGMAPS}/raced`, { body: { ...made, data: { i: String(i) } } }),
      ),
    );
    const statuses = answers.map(({ status }) => status);
    assert.deepEqual([statuses.filter((s) => s === 200).length, statuses.filter((s) => s === 409).length], [1, 9]);
  });

  test('JSON, merge and strategic patches change an object', async () => {
    await api.ok('POST', CONFIGMAPS, {
      body: configMap('patched', { a: '1', b: '2' }, { finalizers: ['x.example/one'] }),
    });
    const url = `${CONFIGMAPS}/patched`;
    const json = await api.ok('PATCH', url, {
      body: [
        { op: 'replace', path: '/data/a', value: '3' },
        { op: 'remove', path: '/data/b' },
      ],
      contentType: 'application/json-patch+json',
    });
    assert.deepEqual(json.data, { a: '3' });
    const merged = await api.ok('PATCH', url, { body: { data: { a: null, c: '4' } } });
    assert.deepEqual(merged.data, { c: '4' });
    const strategic = await api.ok('PATCH', url, {
      body: { metadata: { finalizers: ['x.example/two'] } },
      contentType: 'application/strategic-merge-patch+json',
    });
    assert.deepEqual(new Set(strategic.metadata.finalizers), new Set(['x.example/one', 'x.example/two']));
  });
});

describe('delete', () => {
  test('returns Success with the uid, and the object is gone', async () => {
    const made = await api.ok('POST', GADGETS, { body: aGadget('doomed') });
    const answer = await api.ok('DELETE', `${GADGETS}/doomed`);
    assert.deepEqual(answer, {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      details: { name: 'doomed', group: 'golden.local', kind: 'gadgets', uid: made.metadata.uid },
    });
    assert.equal((await api.call('GET', `${GADGETS}/doomed`)).status, 404);
  });

  test('finalizers hold an object until the last one is removed', async () => {
    const url = `${GADGETS}/held`;
    await api.ok('POST', GADGETS, { body: aGadget('held', { size: 1 }, { finalizers: ['golden.local/hold'] }) });
    const held = await api.ok('DELETE', url);
    assert.match(held.metadata.deletionTimestamp, /Z$/);
    assert.deepEqual([held.metadata.deletionGracePeriodSeconds, held.metadata.generation], [0, 2]);
    const repeated = await api.ok('DELETE', url);
    assert.equal(repeated.metadata.deletionTimestamp, held.metadata.deletionTimestamp);
    const added = await api.call('PATCH', url, {
      body: { metadata: { finalizers: ['golden.local/hold', 'golden.local/more'] } },
    });
    assert.equal(added.status, 422);
    assert.match(added.body.message, /no new finalizers can be added if the object is being deleted/);
    await api.ok('PATCH', url, { body: { metadata: { finalizers: null } } });
    assert.equal((await api.call('GET', url)).status, 404);
  });

  for (const [policy, finalizer] of [
    ['Foreground', 'foregroundDeletion'],
    ['Orphan', 'orphan'],
  ] as const) {
    test(`records the policy ${policy}`, async () => {
      await api.ok('POST', GADGETS, { body: aGadget(`by-${policy.toLowerCase()}`) });
      const answer = await api.ok('DELETE', `${GADGETS}/by-${policy.toLowerCase()}`, {
        body: { propagationPolicy: policy },
      });
      assert.deepEqual(answer.metadata.finalizers, [finalizer]);
    });
  }

  test('a dry run deletes nothing', async () => {
    await api.ok('POST', GADGETS, { body: aGadget('kept') });
    await api.ok('DELETE', `${GADGETS}/kept?dryRun=All`);
    await api.ok('GET', `${GADGETS}/kept`);
  });

  test('a collection by label; other objects stay', async () => {
    for (let i = 0; i < 5; i++)
      await api.ok('POST', CONFIGMAPS, { body: configMap(`many-${i}`, {}, { labels: { group: i < 3 ? 'a' : 'b' } }) });
    const deleted = await api.ok('DELETE', `${CONFIGMAPS}?labelSelector=group%3Da`);
    assert.equal(deleted.items.length, 3);
    const left = await api.ok('GET', `${CONFIGMAPS}?labelSelector=group`);
    assert.deepEqual(
      left.items.map((item: Loose) => item.metadata.name),
      ['many-3', 'many-4'],
    );
  });

  test('a pod on a node has its grace period, one without a node is deleted at once', async () => {
    const pods = '/api/v1/namespaces/golden/pods';
    const pod = (name: string, nodeName?: string): Loose => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: { nodeName, containers: [{ name: 'c', image: 'i' }] },
    });
    await api.ok('POST', pods, { body: pod('waiting') });
    await api.ok('POST', pods, { body: pod('running', 'node-1') });
    await api.ok('DELETE', `${pods}/waiting`);
    assert.equal((await api.call('GET', `${pods}/waiting`)).status, 404);
    const graceful = await api.ok('DELETE', `${pods}/running`);
    assert.equal(graceful.metadata.deletionGracePeriodSeconds, 30);
    await api.ok('DELETE', `${pods}/running?gracePeriodSeconds=0`);
    assert.equal((await api.call('GET', `${pods}/running`)).status, 404);
  });
});

describe('namespaces', () => {
  test('deleting a namespace deletes its content', async () => {
    await api.ok('POST', '/api/v1/namespaces', {
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'brief' } },
    });
    await api.ok('POST', '/api/v1/namespaces/brief/configmaps', { body: configMap('inside') });
    await api.ok('POST', '/apis/golden.local/v1/namespaces/brief/gadgets', {
      body: aGadget('inside', { size: 1 }, { finalizers: ['golden.local/hold'] }),
    });
    const watch = await api.watch('/api/v1/namespaces?watch=1&fieldSelector=metadata.name=brief');
    const answer = await api.ok('DELETE', '/api/v1/namespaces/brief');
    assert.deepEqual([answer.status.phase, answer.spec.finalizers], ['Terminating', ['kubernetes']]);
    const late = await api.call('POST', '/api/v1/namespaces/brief/configmaps', { body: configMap('late') });
    assert.deepEqual(
      [late.status, late.body.message],
      [
        403,
        'configmaps "late" is forbidden: unable to create new content in namespace brief because it is being terminated',
      ],
    );
    await api.ok('PATCH', '/apis/golden.local/v1/namespaces/brief/gadgets/inside', {
      body: { metadata: { finalizers: null } },
    });
    for (let seen = 1; (await watch.awaitEvents(seen))[seen - 1]!.type !== 'DELETED'; seen++);
    watch.stop();
    assert.equal((await api.call('GET', '/api/v1/namespaces/brief')).status, 404);
    assert.deepEqual((await api.ok('GET', '/api/v1/namespaces/brief/configmaps')).items, []);
  });
});

test('metrics have bounded labels, whatever clients send', async () => {
  await api.call('FROB', CONFIGMAPS);
  await api.call('TICKLE', '/nothing');
  await api.call('GET', '/api/v1/namespaces/golden/inventions');
  const { text } = await api.call('GET', '/metrics');
  assert.match(text, /apiserver_request_total\{verb="other",resource="configmaps",code="405"\} 1/);
  assert.match(text, /apiserver_request_total\{verb="list",resource="",code="404"\}/);
  for (const invented of ['FROB', 'TICKLE', 'inventions']) assert.ok(!text.includes(invented), invented);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client } from '#client/client.ts';
import { createClient } from '#client/rest-client.ts';
import { GADGETS, aGadget } from '#client/testing/gadgets.ts';
import { TransportError } from '#client/transport.ts';
import type { Transport, TransportRequest } from '#client/transport.ts';
import { ApiError } from '#kube/api-error.ts';
import type { ResourceType } from '#kube/meta.ts';

const NODES: ResourceType = { group: '', version: 'v1', kind: 'Node', plural: 'nodes', namespaced: false };
const BASE = '/apis/test.local/v1/namespaces/default/gadgets';
const a = { namespace: 'default', name: 'a' };

function recordRequests(response: unknown = aGadget('a'), lines: unknown[] = []) {
  const requests: TransportRequest[] = [];
  const transport: Transport = {
    async request(request) {
      requests.push(request);
      return { status: 200, body: structuredClone(response), warnings: ['be careful'] };
    },
    async *stream(request) {
      requests.push(request);
      yield* lines;
    },
  };
  return { transport, requests };
}

interface Case {
  call(client: Client): Promise<unknown>;
  want: string;
  contentType?: string;
  body?: unknown;
}

const cases: Record<string, Case> = {
  'gets an object of a namespaced kind': { call: (client) => client.get(GADGETS, a), want: `GET ${BASE}/a` },
  'gets an object of a core kind without a namespace': {
    call: (client) => client.get(NODES, { name: 'n1' }),
    want: 'GET /api/v1/nodes/n1',
  },
  'encodes a name that looks like a path': {
    call: (client) => client.get(NODES, { name: 'a/../b?c' }),
    want: 'GET /api/v1/nodes/a%2F..%2Fb%3Fc',
  },
  'creates with dry run and field manager': {
    call: (client) => client.create(GADGETS, aGadget('a'), { dryRun: true, fieldManager: 'me' }),
    want: `POST ${BASE}?dryRun=All&fieldManager=me`,
    contentType: 'application/json',
    body: aGadget('a'),
  },
  'creates a subresource': {
    call: (client) => client.create(GADGETS, aGadget('a'), { subresource: 'eviction' }),
    want: `POST ${BASE}/a/eviction`,
    body: aGadget('a'),
  },
  'updates the status': {
    call: (client) => client.update(GADGETS, aGadget('a'), { subresource: 'status' }),
    want: `PUT ${BASE}/a/status`,
    body: aGadget('a'),
  },
  'sends a JSON patch': {
    call: (client) => client.patch(GADGETS, a, { type: 'json', body: [] }),
    want: `PATCH ${BASE}/a`,
    contentType: 'application/json-patch+json',
    body: [],
  },
  'sends a merge patch': {
    call: (client) => client.patch(GADGETS, a, { type: 'merge', body: {} }),
    want: `PATCH ${BASE}/a`,
    contentType: 'application/merge-patch+json',
    body: {},
  },
  'sends a strategic merge patch': {
    call: (client) => client.patch(GADGETS, a, { type: 'strategic', body: {} }),
    want: `PATCH ${BASE}/a`,
    contentType: 'application/strategic-merge-patch+json',
    body: {},
  },
  'applies with force': {
    call: (client) => client.patch(GADGETS, a, { type: 'apply', body: {} }, { fieldManager: 'me', force: true }),
    want: `PATCH ${BASE}/a?fieldManager=me&force=true`,
    contentType: 'application/apply-patch+yaml',
    body: {},
  },
  'deletes with preconditions and policy': {
    call: (client) =>
      client.delete(GADGETS, a, { uid: 'u1', propagationPolicy: 'Foreground', gracePeriodSeconds: 0, dryRun: true }),
    want: `DELETE ${BASE}/a`,
    body: {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      preconditions: { uid: 'u1' },
      gracePeriodSeconds: 0,
      propagationPolicy: 'Foreground',
      dryRun: ['All'],
    },
  },
  'deletes without options': {
    call: (client) => client.delete(GADGETS, a),
    want: `DELETE ${BASE}/a`,
    body: { kind: 'DeleteOptions', apiVersion: 'v1' },
  },
  'deletes a collection': {
    call: (client) => client.deleteCollection(GADGETS, { namespace: 'default', labelSelector: 'a=b' }),
    want: `DELETE ${BASE}?labelSelector=a%3Db`,
    body: { kind: 'DeleteOptions', apiVersion: 'v1' },
  },
};

for (const [sentence, { call, want, contentType, body }] of Object.entries(cases)) {
  test(`client: ${sentence}`, async () => {
    const { transport, requests } = recordRequests();
    await call(createClient(transport));
    const [request] = requests;
    const query = request?.query?.toString() ?? '';
    assert.equal(`${request?.method} ${request?.path}${query === '' ? '' : `?${query}`}`, want);
    if (contentType !== undefined) assert.equal(request?.contentType, contentType);
    assert.deepEqual(request?.body === undefined ? undefined : JSON.parse(JSON.stringify(request.body)), body);
  });
}

const refused: Record<string, { call(client: Client): Promise<unknown>; want: RegExp }> = {
  'an empty name': { call: (client) => client.get(NODES, { name: '' }), want: /is not a name/ },
  'a name that is a parent path': { call: (client) => client.get(NODES, { name: '..' }), want: /is not a name/ },
  'a single object without a namespace': {
    call: (client) => client.get(GADGETS, { name: 'a' }),
    want: /no namespace is given/,
  },
  'deleting a collection without a namespace': {
    call: (client) => client.deleteCollection(GADGETS),
    want: /no namespace is given/,
  },
};

for (const [sentence, { call, want }] of Object.entries(refused)) {
  test(`client refuses ${sentence}`, async () => {
    const { transport, requests } = recordRequests();
    await assert.rejects(async () => call(createClient(transport)), want);
    assert.equal(requests.length, 0);
  });
}

test('list adds the fields that kube-apiserver omits from items', async () => {
  const list = {
    kind: 'NodeList',
    apiVersion: 'v1',
    metadata: { resourceVersion: '7' },
    items: [{ metadata: { name: 'n1' } }],
  };
  const { transport, requests } = recordRequests(list);
  const options = { labelSelector: 'a=b', limit: 5, continue: 'x', resourceVersion: '3' } as const;
  const { items } = await createClient(transport).list(NODES, options);
  assert.deepEqual(items, [{ metadata: { name: 'n1' }, apiVersion: 'v1', kind: 'Node' }]);
  assert.equal(requests[0]?.query?.toString(), 'labelSelector=a%3Db&resourceVersion=3&limit=5&continue=x');
});

test('list treats null items, which a Go server may send, as empty', async () => {
  const { transport } = recordRequests({ kind: 'NodeList', metadata: { resourceVersion: '7' }, items: null });
  assert.deepEqual((await createClient(transport).list(NODES)).items, []);
});

test('watch sends its options and throws ERROR events', async () => {
  const expired = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' };
  const { transport, requests } = recordRequests(undefined, [
    { type: 'ADDED', object: aGadget('a') },
    { type: 'ERROR', object: expired },
  ]);
  const options = { resourceVersion: '3', allowWatchBookmarks: true, sendInitialEvents: true, timeoutSeconds: 9 };
  const names: unknown[] = [];
  await assert.rejects(
    async () => {
      for await (const { object } of createClient(transport).watch(GADGETS, options)) names.push(object.metadata.name);
    },
    (error: unknown) => error instanceof ApiError && error.code === 410 && error.reason === 'Expired',
  );
  assert.deepEqual(names, ['a']);
  const query =
    'watch=true&resourceVersion=3&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=9';
  assert.equal(requests[0]?.query?.toString(), query);
});

test('refuses a response that is not an object, and passes on warnings', async () => {
  const warnings: string[] = [];
  const client = createClient(recordRequests('nonsense').transport, { onWarning: (warning) => warnings.push(warning) });
  await assert.rejects(client.get(GADGETS, a), TransportError);
  assert.deepEqual(warnings, ['be careful']);
});

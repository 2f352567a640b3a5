/** OpenAPI as clients fetch it: an index with hashes, cacheable documents, and references that resolve. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { installGadgets } from '#test/support/gadgets.ts';
import { startTestApi, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;

before(async () => {
  api = await startTestApi();
  await installGadgets(api);
});
after(() => api.stop());

interface Index {
  readonly paths: Record<string, { serverRelativeURL: string }>;
}

const indexOf = async () => (await api.ok('GET', '/openapi/v3')) as Index;

test('a document at its hash may be cached until it changes', async () => {
  const { paths } = await indexOf();
  assert.ok(paths['api/v1'] && paths['apis/golden.local/v1']);
  for (const [path, { serverRelativeURL }] of Object.entries(paths)) {
    const answer = await api.call('GET', serverRelativeURL);
    assert.equal(answer.status, 200, path);
    assert.match(answer.headers['cache-control']!, /^public, immutable/);
    assert.equal(answer.headers['etag'], `"${serverRelativeURL.split('hash=')[1]}"`);
  }
});

test('without a hash it must be revalidated', async () => {
  const { headers } = await api.call('GET', '/openapi/v3/api/v1');
  assert.equal(headers['cache-control'], undefined);
  assert.ok(headers['etag']);
});

test('an outdated hash redirects to the current document', async () => {
  const { serverRelativeURL } = (await indexOf()).paths['apis/golden.local/v1']!;
  const answer = await api.call('GET', '/openapi/v3/apis/golden.local/v1?hash=ABC');
  assert.equal(answer.status, 301);
  assert.equal(answer.headers['location'], serverRelativeURL);
  assert.equal(answer.headers['cache-control'], undefined);
});

test('a change of a kind changes only the hash of its group', async () => {
  const before = (await indexOf()).paths;
  const crd = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.golden.local';
  await api.ok('PATCH', crd, {
    contentType: 'application/json-patch+json',
    body: [{ op: 'add', path: '/spec/versions/0/schema/openAPIV3Schema/description', value: 'A new word.' }],
  });
  await api.settle();
  const now = (await indexOf()).paths;
  assert.deepEqual(Object.keys(now), Object.keys(before));
  const changed = Object.keys(now).filter((path) => now[path]!.serverRelativeURL !== before[path]!.serverRelativeURL);
  assert.deepEqual(changed, ['apis/golden.local/v1']);
});

test('every reference in every document resolves', async () => {
  for (const path of Object.keys((await indexOf()).paths)) {
    const { text, body } = await api.call('GET', `/openapi/v3/${path}`);
    const models = new Set([...text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(([, model]) => model!));
    assert.ok(models.size > 3, path);
    for (const model of models) assert.ok(body.components.schemas[model], `${path}: ${model}`);
  }
  const { text, body } = await api.call('GET', '/openapi/v2');
  for (const [, model] of text.matchAll(/"\$ref":"#\/definitions\/([^"]+)"/g))
    assert.ok(body.definitions[model!], model);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { DiscoveryDocuments } from '#engine/discovery/discovery-documents.ts';
import { negotiateDiscovery } from '#engine/discovery/negotiate-discovery.ts';
import { everything, pods } from '#engine/discovery/testing/sample-resource.ts';

const V2 = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const V2_BETA = 'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList';

const negotiations: Record<string, { accept: string; want: string }> = {
  'kubectl 1.20 gets plain': { accept: 'application/json, */*', want: 'plain' },
  'kubectl 1.27 gets v2beta1': { accept: `${V2_BETA},application/json`, want: 'v2beta1' },
  'kubectl 1.32 gets v2, its first choice': { accept: `${V2},${V2_BETA},application/json`, want: 'v2' },
  'quality takes precedence over order': { accept: `${V2};q=0.5,${V2_BETA}`, want: 'v2beta1' },
  'a form with quality 0 is not used': { accept: `${V2};q=0,application/json`, want: 'plain' },
  'an aggregated form takes precedence over plain in any order': { accept: `application/json,${V2}`, want: 'v2' },
  'an unknown version gets plain': { accept: V2.replace('v=v2', 'v=v9'), want: 'plain' },
  'another group gets plain': { accept: V2.replace('apidiscovery', 'meta'), want: 'plain' },
  'protobuf only gets plain': { accept: V2.replace('json', 'vnd.kubernetes.protobuf'), want: 'plain' },
  'no header gets plain': { accept: '', want: 'plain' },
};
for (const [name, { accept, want }] of Object.entries(negotiations)) {
  test(`discovery negotiation: ${name}`, () => assert.equal(negotiateDiscovery(accept), want));
}

const documents = () => new DiscoveryDocuments(everything, '127.0.0.1:6443');

const paths: Record<string, { path: string; kind: string | undefined }> = {
  'the core versions': { path: '/api', kind: 'APIVersions' },
  'the groups': { path: '/apis', kind: 'APIGroupList' },
  'the groups, with a slash': { path: '/apis/', kind: 'APIGroupList' },
  'a group': { path: '/apis/golden.local', kind: 'APIGroup' },
  'a version': { path: '/apis/golden.local/v1', kind: 'APIResourceList' },
  'the core version': { path: '/api/v1', kind: 'APIResourceList' },
  'a missing group': { path: '/apis/nothing.local', kind: undefined },
  'a missing version': { path: '/api/v2', kind: undefined },
  'a path below a version': { path: '/apis/golden.local/v1/gadgets', kind: undefined },
  'an unrelated path': { path: '/metrics', kind: undefined },
};
for (const [name, { path, kind }] of Object.entries(paths)) {
  test(`discovery path ${path}: ${name}`, () => {
    const document = documents().find(path, 'application/json');
    assert.equal(document && JSON.parse(document.body.toString()).kind, kind);
  });
}

test('each form of /apis has its own content type and etag', () => {
  const all = documents();
  const plain = all.find('/apis', '')!;
  const v2 = all.find('/apis', V2)!;
  const beta = all.find('/apis', V2_BETA)!;
  assert.deepEqual([plain.contentType, v2.contentType, beta.contentType], ['application/json', V2, V2_BETA]);
  assert.equal(new Set([plain.etag, v2.etag, beta.etag]).size, 3);
  assert.match(v2.etag, /^"[0-9A-F]{64}"$/);
});

test('only /api and /apis have an aggregated form', () => {
  assert.equal(documents().find('/api/v1', V2)!.contentType, 'application/json');
});

test('a document is built once and its etag depends on its content', () => {
  const all = documents();
  const document = all.find('/apis', V2)!;
  assert.equal(all.find('/apis/', V2), document);
  assert.equal(documents().find('/apis', V2)!.etag, document.etag);
  assert.notEqual(new DiscoveryDocuments([pods], '127.0.0.1:6443').find('/apis', V2)!.etag, document.etag);
});

test('If-None-Match matches one of several weak or strong etags', () => {
  const document = documents().find('/apis', V2)!;
  assert.equal(document.matches(document.etag), true);
  assert.equal(document.matches(`"other", W/${document.etag}`), true);
  assert.equal(document.matches('"other"'), false);
  assert.equal(document.matches(undefined), false);
});

test('the compressed bytes are the same document', async () => {
  const document = documents().find('/apis', V2)!;
  const compressed = await document.gzip();
  assert.deepEqual(gunzipSync(compressed), document.body);
  assert.equal(await document.gzip(), compressed);
});

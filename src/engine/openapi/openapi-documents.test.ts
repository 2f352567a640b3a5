import assert from 'node:assert/strict';
import { test } from 'node:test';
import { everything, pods } from '#engine/discovery/testing/sample-resource.ts';
import { negotiateOpenApiV2, negotiateOpenApiV3, OpenApiDocuments } from '#engine/openapi/openapi-documents.ts';
import { ApiError } from '#kube/api-error.ts';

const PROTOBUF = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';

const negotiations: Record<string, { accept: string; want: string }> = {
  'selects protobuf for kubectl': { accept: PROTOBUF, want: 'protobuf' },
  'selects protobuf by its legal media type': { accept: PROTOBUF.replace('@', '.'), want: 'protobuf' },
  'prefers JSON if it comes first': { accept: `application/json,${PROTOBUF}`, want: 'json' },
  'prefers protobuf if it comes first': { accept: `${PROTOBUF},application/json`, want: 'protobuf' },
  'selects JSON for any type': { accept: '*/*', want: 'json' },
  'selects JSON without a header': { accept: '', want: 'json' },
  'rejects a browser type': { accept: 'text/html', want: 'not-acceptable' },
};
for (const [name, { accept, want }] of Object.entries(negotiations)) {
  test(`OpenAPI v2 negotiation: ${name}`, () => assert.equal(negotiateOpenApiV2(accept), want));
}

test('OpenAPI v3 is served as JSON only', () => {
  assert.equal(negotiateOpenApiV3('application/json'), 'json');
  assert.equal(negotiateOpenApiV3('application/com.github.proto-openapi.spec.v3.v1.0+protobuf'), 'not-acceptable');
});

interface Index {
  paths: Record<string, { serverRelativeURL: string }>;
}

test('the index links every document with the hash of its bytes', () => {
  const documents = new OpenApiDocuments(everything);
  const { paths } = JSON.parse(documents.v3Index().body.toString()) as Index;
  assert.deepEqual(Object.keys(paths), [
    'api/v1',
    'apis/apiextensions.k8s.io/v1',
    'apis/authorization.k8s.io/v1',
    'apis/golden.local/v1',
    'apis/golden.local/v1beta1',
  ]);
  for (const [path, { serverRelativeURL }] of Object.entries(paths)) {
    const document = documents.find(`/openapi/v3/${path}`, '')!;
    assert.equal(serverRelativeURL, `/openapi/v3/${path}?hash=${document.hash}`);
  }
});

test('a change in one group does not change the hashes of other groups', () => {
  const before = new OpenApiDocuments(everything);
  const after = new OpenApiDocuments(everything.filter((resource) => resource.version !== 'v1beta1'));
  assert.equal(after.v3('api/v1')!.hash, before.v3('api/v1')!.hash);
  assert.notEqual(after.v3Index().hash, before.v3Index().hash);
});

const found: Record<string, { path: string; accept?: string; want: string | undefined }> = {
  'the index': { path: '/openapi/v3', want: 'application/json' },
  'a version': { path: '/openapi/v3/api/v1', want: 'application/json' },
  'v2 as JSON': { path: '/openapi/v2', want: 'application/json' },
  'v2 as protobuf': { path: '/openapi/v2', accept: PROTOBUF, want: PROTOBUF.replace('@', '.') },
  'a version that is not served': { path: '/openapi/v3/api/v2', want: undefined },
  'another path': { path: '/openapi/v4', want: undefined },
};
for (const [name, { path, accept = '', want }] of Object.entries(found)) {
  test(`OpenAPI path ${path}: ${name}`, () => {
    const documents = new OpenApiDocuments(everything);
    const document = documents.find(path, accept);
    assert.equal(document?.contentType, want);
    assert.equal(documents.find(path, accept), document, 'the document must be built once');
  });
}

test('a client that accepts neither encoding gets 406', () => {
  const documents = new OpenApiDocuments([pods]);
  for (const path of ['/openapi/v2', '/openapi/v3', '/openapi/v3/api/v1']) {
    assert.throws(
      () => documents.find(path, 'text/html'),
      (error) => error instanceof ApiError && error.code === 406,
    );
  }
});

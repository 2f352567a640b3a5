import assert from 'node:assert/strict';
import { test } from 'node:test';
import { everything, pods } from '#engine/discovery/resource.fixture.ts';
import { negotiateOpenApiV2, negotiateOpenApiV3 } from '#engine/openapi/negotiate-openapi.ts';
import { OpenApiDocuments } from '#engine/openapi/openapi-documents.ts';
import { ApiError } from '#kube/api-error.ts';

const PROTOBUF = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';

const negotiations: Record<string, { accept: string; want: string }> = {
  'kubectl asks for protobuf': { accept: PROTOBUF, want: 'protobuf' },
  'the legal name of protobuf': { accept: PROTOBUF.replace('@', '.'), want: 'protobuf' },
  'JSON wins where it stands first': { accept: `application/json,${PROTOBUF}`, want: 'json' },
  'protobuf wins where it stands first': { accept: `${PROTOBUF},application/json`, want: 'protobuf' },
  'anything is JSON': { accept: '*/*', want: 'json' },
  'no header is JSON': { accept: '', want: 'json' },
  'a browser type is refused': { accept: 'text/html', want: 'not-acceptable' },
};
for (const [name, { accept, want }] of Object.entries(negotiations)) {
  test(`OpenAPI v2 negotiation: ${name}`, () => assert.equal(negotiateOpenApiV2(accept), want));
}

test('OpenAPI v3 is JSON or nothing', () => {
  assert.equal(negotiateOpenApiV3('application/json'), 'json');
  assert.equal(negotiateOpenApiV3('application/com.github.proto-openapi.spec.v3.v1.0+protobuf'), 'not-acceptable');
});

interface Index {
  paths: Record<string, { serverRelativeURL: string }>;
}

test('the index names every document with the hash of its bytes', () => {
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

test('a change of one group leaves the hashes of the others', () => {
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
    assert.equal(documents.find(path, accept), document, 'it is built once');
  });
}

test('a client that takes no encoding of ours gets 406', () => {
  const documents = new OpenApiDocuments([pods]);
  for (const path of ['/openapi/v2', '/openapi/v3', '/openapi/v3/api/v1']) {
    assert.throws(
      () => documents.find(path, 'text/html'),
      (error) => error instanceof ApiError && error.code === 406,
    );
  }
});

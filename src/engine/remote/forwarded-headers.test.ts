import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isForwarded, requestHeaders, responseHeaders } from '#engine/remote/forwarded-headers.ts';
import type { ApiRequest } from '#engine/request/request.ts';

function aRequest(headers: Record<string, string>): ApiRequest {
  return {
    method: 'GET',
    path: '/',
    query: new URLSearchParams(),
    user: { name: 'ada', groups: [] },
    accept: headers['accept'] ?? '',
    contentType: headers['content-type'] ?? '',
    userAgent: headers['user-agent'] ?? '',
    header: (name) => headers[name],
    headerNames: () => Object.keys(headers),
    body: async () => Buffer.alloc(0),
    signal: new AbortController().signal,
  };
}

const names: Record<string, boolean> = {
  accept: true,
  cookie: true,
  'sec-websocket-key': true,
  'x-requested-by': true,
  authorization: false,
  host: false,
  ':path': false,
  te: false,
  'transfer-encoding': false,
  'x-remote-user': false,
  'x-remote-extra-anything': false,
  'impersonate-group': false,
  'x-forwarded-for': false,
};
for (const [name, want] of Object.entries(names)) {
  test(`${name} is ${want ? '' : 'not '}forwarded`, () => assert.equal(isForwarded(name), want));
}

test('headers that Connection names are not forwarded', () => {
  const headers = requestHeaders(aRequest({ connection: 'close, X-Hop', 'x-hop': '1', 'x-end': '2', accept: '*/*' }));
  assert.deepEqual({ ...headers }, { 'x-end': '2', accept: '*/*' });
});

test('a local request has headers from its fields', () => {
  const { header: _, headerNames: __, ...local } = aRequest({ accept: 'application/json', 'user-agent': 'me' });
  assert.deepEqual({ ...requestHeaders(local) }, { accept: 'application/json', 'user-agent': 'me' });
});

test('headers of the response message are forwarded', () => {
  const received = {
    'content-type': 'text/plain',
    'content-length': '5',
    'transfer-encoding': 'chunked',
    connection: 'x-hop',
    'x-hop': '1',
    'audit-id': 'theirs',
    etag: '"1"',
    'set-cookie': ['a=1', 'b=2'],
  };
  assert.deepEqual({ ...responseHeaders(received) }, { etag: '"1"', 'set-cookie': 'a=1, b=2' });
});

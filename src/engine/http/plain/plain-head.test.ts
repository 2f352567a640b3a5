import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plainHead } from '#engine/http/plain/plain-head.ts';

const head = (...lines: string[]) => lines.join('\r\n');
const GET = 'GET /api/v1/nodes?limit=5 HTTP/1.1';
const POST = 'POST /api/v1/namespaces HTTP/1.1';

test('a plain head is parsed', () => {
  const text = head(
    POST,
    'Host: x:1',
    'Accept:application/json',
    'X-Empty:',
    'User-Agent: \t a  b\t',
    'Content-Length: 12',
  );
  const { head: read } = plainHead(text, undefined)!;
  assert.deepEqual(
    { ...read, headers: { ...read.headers } },
    {
      method: 'POST',
      url: '/api/v1/namespaces',
      bodyBytes: 12,
      headers: { host: 'x:1', accept: 'application/json', 'x-empty': '', 'user-agent': 'a  b', 'content-length': '12' },
    },
  );
});

test('unchanged fields are not parsed again', () => {
  const first = plainHead(head(GET, 'Host: x'), undefined)!;
  const second = plainHead(head('DELETE /b HTTP/1.1', 'Host: x'), first.fields)!;
  assert.equal(second.fields, first.fields);
  assert.equal(second.head.url, '/b');
  const third = plainHead(head(GET, 'Host: y'), first.fields)!;
  assert.equal(third.head.headers['host'], 'y');
});

test('the name of a prototype property is an ordinary header', () => {
  const { head: read } = plainHead(head(GET, 'Host: x', '__proto__: a', 'constructor: b'), undefined)!;
  assert.equal(read.headers['__proto__'], 'a');
  assert.equal(read.headers['constructor'], 'b');
  assert.equal(read.headers['tostring'], undefined);
});

const others: Record<string, string> = {
  'without fields': GET,
  'without a host': head(GET, 'Accept: a'),
  'with another method': head('HEAD / HTTP/1.1', 'Host: x'),
  'of an older version': head('GET / HTTP/1.0', 'Host: x'),
  'with an absolute URL': head('GET https://x/ HTTP/1.1', 'Host: x'),
  'with a space in its path': head('GET /a b HTTP/1.1', 'Host: x'),
  'with a watch': head('GET /api/v1/nodes?watch=1 HTTP/1.1', 'Host: x'),
  'with a log that is followed': head('GET /log?tailLines=1&follow=true HTTP/1.1', 'Host: x'),
  'with two hosts': head(GET, 'Host: x', 'host: y'),
  'with a field twice': head(GET, 'Host: x', 'Accept: a', 'Accept: b'),
  'with chunks': head(POST, 'Host: x', 'Transfer-Encoding: chunked'),
  'with both lengths': head(POST, 'Host: x', 'Content-Length: 4', 'Transfer-Encoding: chunked'),
  'with an invalid length': head(POST, 'Host: x', 'Content-Length: +4'),
  'with a list of lengths': head(POST, 'Host: x', 'Content-Length: 4, 4'),
  'with a length above the limit': head(POST, 'Host: x', 'Content-Length: 1048577'),
  'with Expect: 100-continue': head(POST, 'Host: x', 'Expect: 100-continue'),
  'with an upgrade': head(GET, 'Host: x', 'Connection: Upgrade', 'Upgrade: websocket'),
  'that closes its connection': head(GET, 'Host: x', 'Connection: close'),
  'with a folded line': head(GET, 'Host: x', 'Accept: a', ' b'),
  'with a space before the colon': head(GET, 'Host: x', 'Accept : a'),
  'with a bare line feed': head(GET, 'Host: x', 'Accept: a\nEvil: b'),
  'with a bare carriage return': head(GET, 'Host: x', 'Accept: a\rEvil: b'),
  'with bytes beyond ASCII': head(GET, 'Host: x', 'X: ü'),
  'with very many spaces': head(GET, 'Host: x', `X:${' '.repeat(60_000)}\0`),
  'without a colon': head(GET, 'Host: x', 'Accept'),
  'with a NUL': head(GET, 'Host: x', 'X: a\0'),
};

for (const [what, text] of Object.entries(others)) {
  test(`a head ${what} is left to node's own parser`, () => {
    assert.equal(plainHead(text, undefined), undefined);
  });
}

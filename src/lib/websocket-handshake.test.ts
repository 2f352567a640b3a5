import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientHandshake, checkServerResponse, serverHandshake } from '#lib/websocket-handshake.ts';

type Headers = Readonly<Record<string, string>>;
const readFrom = (headers: Headers) => (name: string) => headers[name];
const RFC_KEY = 'dGhlIHNhbXBsZSBub25jZQ==';
const GOOD: Headers = { 'sec-websocket-key': RFC_KEY, 'sec-websocket-version': '13' };

test('the server computes the accept key of RFC 6455 section 1.3', () => {
  const answer = serverHandshake(readFrom(GOOD), []);
  assert.ok('head' in answer);
  assert.match(
    answer.head.toString(),
    /^HTTP\/1\.1 101 .*\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=\r\n\r\n$/s,
  );
});

const servers: Record<string, { headers: Headers; known?: string[]; want: string | number | undefined }> = {
  'accepts a client without subprotocols': { headers: GOOD, known: ['a'], want: undefined },
  'selects the first subprotocol of the client that is known': {
    headers: { ...GOOD, 'sec-websocket-protocol': 'x, b ,a' },
    known: ['a', 'b'],
    want: 'b',
  },
  'refuses a client with unknown subprotocols only': {
    headers: { ...GOOD, 'sec-websocket-protocol': 'x' },
    known: ['a'],
    want: 400,
  },
  'refuses a request without a key': { headers: { 'sec-websocket-version': '13' }, want: 400 },
  'refuses a short key': { headers: { ...GOOD, 'sec-websocket-key': 'abc' }, want: 400 },
  'refuses an older version': { headers: { ...GOOD, 'sec-websocket-version': '8' }, want: 426 },
};
for (const [name, { headers, known = [], want }] of Object.entries(servers)) {
  test(`server: ${name}`, () => {
    const answer = serverHandshake(readFrom(headers), known);
    assert.equal('refusal' in answer ? answer.refusal.status : answer.protocol, want);
  });
}

const nonce = Buffer.from(RFC_KEY, 'base64');
const ACCEPTED: Headers = { upgrade: 'WebSocket', 'sec-websocket-accept': 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=' };

test('client: requests with its key and subprotocols', () => {
  const headers = clientHandshake(nonce, ['a', 'b']);
  assert.equal(headers['Sec-WebSocket-Key'], RFC_KEY);
  assert.equal(headers['Sec-WebSocket-Protocol'], 'a, b');
  assert.ok(!('Sec-WebSocket-Protocol' in clientHandshake(nonce, [])));
});

const responses: Record<string, { headers: Headers; want: RegExp | undefined }> = {
  'accepts a valid response': { headers: ACCEPTED, want: undefined },
  'accepts one of its subprotocols': { headers: { ...ACCEPTED, 'sec-websocket-protocol': 'a' }, want: undefined },
  'refuses a subprotocol that it did not request': {
    headers: { ...ACCEPTED, 'sec-websocket-protocol': 'z' },
    want: /chose subprotocol z, which was not requested/,
  },
  'refuses the response to another key': {
    headers: { ...ACCEPTED, 'sec-websocket-accept': 'AAAA' },
    want: /wrong Sec-WebSocket-Accept/,
  },
  'refuses another protocol': { headers: { ...ACCEPTED, upgrade: 'SPDY/3.1' }, want: /another protocol/ },
};
for (const [name, { headers, want }] of Object.entries(responses)) {
  test(`client: ${name}`, () => {
    const problem = checkServerResponse(nonce, ['a'], readFrom(headers));
    if (want === undefined) assert.equal(problem, undefined);
    else assert.match(problem ?? '', want);
  });
}

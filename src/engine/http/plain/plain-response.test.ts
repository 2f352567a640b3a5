import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeResponse } from '#engine/http/plain/plain-response.ts';

const aHead = { status: 200, headers: { 'content-type': 'text/plain' }, auditId: 'id', date: 'now' };
const text = (pieces: readonly Buffer[]) => Buffer.concat([...pieces]).toString('latin1');

test('a small response is one buffer, with its length', () => {
  const pieces = encodeResponse(aHead, [Buffer.from('ok')], 2);
  assert.equal(pieces.length, 1);
  assert.equal(
    text(pieces),
    'HTTP/1.1 200 OK\r\naudit-id: id\r\ndate: now\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok',
  );
});

test('a large response is not copied', () => {
  const body = Buffer.alloc(100_000, 'x');
  const pieces = encodeResponse(aHead, [body], body.length);
  assert.equal(pieces[1], body);
});

test('a header with several values has a line for each', () => {
  const headers = { warning: ['299 - "a"', '299 - "b"'] };
  assert.match(text(encodeResponse({ ...aHead, headers }, [], 0)), /\r\nwarning: 299 - "a"\r\nwarning: 299 - "b"\r\n/);
});

test('responses without a body have none', () => {
  const answer = text(encodeResponse({ ...aHead, status: 304 }, [Buffer.from('x')], 0));
  assert.match(answer, /^HTTP\/1\.1 304 Not Modified\r\n/);
  assert.ok(answer.endsWith('\r\n\r\n'));
});

test('a header value cannot end the head', () => {
  assert.throws(
    () => encodeResponse({ ...aHead, headers: { etag: 'a\r\nset-cookie: b' } }, [], 0),
    /Cannot send the header etag/,
  );
});

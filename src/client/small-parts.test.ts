/** Tests of small modules: keys, revisions, warnings, tokens, errors from responses. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keyOf, objectKey, parseKey } from '#client/object-key.ts';
import { compareRevisions, isRevision } from '#client/revision.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { TokenSource } from '#client/credentials/token-source.ts';
import { errorFromResponse } from '#client/transport.ts';
import { parseWarnings } from '#client/warnings.ts';

test('formats and parses keys with and without a namespace', () => {
  for (const key of ['a', 'ns/a']) assert.equal(keyOf(parseKey(key)), key);
  assert.equal(objectKey({ metadata: { namespace: 'ns', name: 'a' } }), 'ns/a');
  assert.equal(objectKey({ metadata: { namespace: '', name: 'a' } }), 'a');
});

test('compares revisions as numbers, also those that a double cannot represent', () => {
  const ascending = ['0', '2', '10', '99', '9007199254740992', '9007199254740993', '18446744073709551615'];
  for (let i = 1; i < ascending.length; i++) {
    assert.ok(compareRevisions(ascending[i - 1]!, ascending[i]!) < 0, ascending[i]);
    assert.ok(compareRevisions(ascending[i]!, ascending[i - 1]!) > 0, ascending[i]);
    assert.equal(compareRevisions(ascending[i]!, ascending[i]!), 0);
  }
  for (const bad of ['', '01', '-1', 'abc', '1.5', undefined, 7]) assert.equal(isRevision(bad), false, String(bad));
});

const warnings: Record<string, { header: string | undefined; want: string[] }> = {
  'returns none without a header': { header: undefined, want: [] },
  'unquotes a warning': { header: '299 - "unknown field \\"spec.x\\""', want: ['unknown field "spec.x"'] },
  'splits two warnings in one header': {
    header: '299 - "first, with a comma", 299 - "second"',
    want: ['first, with a comma', 'second'],
  },
  'ignores an invalid header': { header: 'nonsense', want: [] },
};

for (const [sentence, { header, want }] of Object.entries(warnings)) {
  test(`warnings: ${sentence}`, () => assert.deepEqual(parseWarnings(header), want));
}

test('derives the reason from the code if the response is not a Status', () => {
  const error = errorFromResponse(503, '<html>busy</html>');
  assert.deepEqual([error.code, error.reason], [503, 'ServiceUnavailable']);
  const status = errorFromResponse(409, '{"kind":"Status","code":409,"reason":"AlreadyExists","message":"taken"}');
  assert.deepEqual([status.code, status.reason, status.message], [409, 'AlreadyExists', 'taken']);
});

test('reads a token file again after a minute and after a refusal, and tolerates a missing file', async () => {
  const clock = new FakeClock();
  let file: string | undefined = 'one\n';
  const readFile = async (): Promise<string> => {
    if (file === undefined) throw new Error('ENOENT');
    return file;
  };
  const source = new TokenSource({ tokenFile: '/token', clock, readFile });
  assert.equal(await source.token(), 'one');
  file = 'two';
  assert.equal(await source.token(), 'one');
  await clock.advance(60_000);
  assert.equal(await source.token(), 'two');
  file = 'three';
  source.discard();
  assert.equal(await source.token(), 'three');
  file = undefined;
  await clock.advance(60_000);
  assert.equal(await source.token(), 'three');
  await assert.rejects(new TokenSource({ tokenFile: '/token', clock, readFile }).token(), /Cannot read the token file/);
  assert.equal(await new TokenSource({ token: 'fixed', clock, readFile }).token(), 'fixed');
});

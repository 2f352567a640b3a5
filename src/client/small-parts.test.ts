/** Tables for the client's smallest parts: keys, revisions, warnings, tokens, errors of answers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keyOf, objectKey, parseKey } from '#client/object-key.ts';
import { compareRevisions, isRevision } from '#client/revision.ts';
import { FakeClock } from '#client/testing/fake-clock.ts';
import { TokenSource } from '#client/token-source.ts';
import { errorOfAnswer } from '#client/transport.ts';
import { parseWarnings } from '#client/warnings.ts';

test('keys name objects with and without a namespace, both ways', () => {
  for (const key of ['a', 'ns/a']) assert.equal(keyOf(parseKey(key)), key);
  assert.equal(objectKey({ metadata: { namespace: 'ns', name: 'a' } }), 'ns/a');
  assert.equal(objectKey({ metadata: { namespace: '', name: 'a' } }), 'a');
});

test('revisions compare as numbers, beyond what a double holds', () => {
  const ascending = ['0', '2', '10', '99', '9007199254740992', '9007199254740993', '18446744073709551615'];
  for (let i = 1; i < ascending.length; i++) {
    assert.ok(compareRevisions(ascending[i - 1]!, ascending[i]!) < 0, ascending[i]);
    assert.ok(compareRevisions(ascending[i]!, ascending[i - 1]!) > 0, ascending[i]);
    assert.equal(compareRevisions(ascending[i]!, ascending[i]!), 0);
  }
  for (const bad of ['', '01', '-1', 'abc', '1.5', undefined, 7]) assert.equal(isRevision(bad), false, String(bad));
});

const warnings: Record<string, { header: string | undefined; want: string[] }> = {
  none: { header: undefined, want: [] },
  one: { header: '299 - "unknown field \\"spec.x\\""', want: ['unknown field "spec.x"'] },
  'two in one header': {
    header: '299 - "first, with a comma", 299 - "second"',
    want: ['first, with a comma', 'second'],
  },
  nonsense: { header: 'nonsense', want: [] },
};

for (const [sentence, { header, want }] of Object.entries(warnings)) {
  test(`warnings: ${sentence}`, () => assert.deepEqual(parseWarnings(header), want));
}

test('an answer that is not a Status gets the reason of its code', () => {
  const error = errorOfAnswer(503, '<html>busy</html>');
  assert.deepEqual([error.code, error.reason], [503, 'ServiceUnavailable']);
  const status = errorOfAnswer(409, '{"kind":"Status","code":409,"reason":"AlreadyExists","message":"taken"}');
  assert.deepEqual([status.code, status.reason, status.message], [409, 'AlreadyExists', 'taken']);
});

test('a token file is read again after a minute and after a refusal, and may be missing for a while', async () => {
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
  source.refused();
  assert.equal(await source.token(), 'three');
  file = undefined;
  await clock.advance(60_000);
  assert.equal(await source.token(), 'three');
  await assert.rejects(new TokenSource({ tokenFile: '/token', clock, readFile }).token(), /Cannot read the token file/);
  assert.equal(await new TokenSource({ token: 'fixed', clock, readFile }).token(), 'fixed');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseBody, parsePatch, parseYamlText } from '#engine/body/decode-body.ts';
import { mediaType } from '#engine/encoding/media-types.ts';
import { encodeStored, decodeStored } from '#engine/encoding/stored-object.ts';
import { NestingError, parseJson } from '#engine/encoding/json.ts';
import { decodeContinue, encodeContinue } from '#engine/handlers/continue-token.ts';
import { ApiError } from '#kube/api-error.ts';

test('stored bytes contain their revision', () => {
  const bytes = encodeStored({ apiVersion: 'v1', kind: 'A', metadata: { name: 'a' } }, 42);
  assert.equal(decodeStored(bytes).metadata.resourceVersion, '42');
});

const inert: Record<string, string> = {
  plain: '{"a":{"__proto__":{"x":1},"b":2}}',
  escaped: '{"a":{"\\u005F_proto__":{"x":1},"b":2}}',
  'escaped elsewhere': '{"a":{"__\\u0070roto__":{"x":1},"b":2}}',
  'inside a list': '[{"__proto__":1}]',
};

for (const [name, text] of Object.entries(inert)) {
  test(`drops __proto__ (${name})`, () => {
    const seen: string[] = [];
    JSON.stringify(parseJson(text), (key, value: unknown) => {
      seen.push(key);
      return value;
    });
    assert.ok(!seen.includes('__proto__'));
  });
}

test('a value that only mentions __proto__ is kept', () => {
  assert.deepEqual(parseJson('{"note":"__proto__ is inert"}'), { note: '__proto__ is inert' });
});

test('nesting is bounded', () => {
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
  assert.doesNotThrow(() => parseJson(nested(200)));
  assert.throws(() => parseJson(nested(300)), NestingError);
  assert.throws(() => parseJson(`${nested(5000).slice(0, 5000)}"\\u0041"${nested(5000).slice(5000)}`), NestingError);
});

test('YAML aliases are bounded', () => {
  const bomb = [
    'a: &a [x,x,x,x,x,x,x,x,x]',
    ...'bcdefghi'.split('').map((key, i) => `${key}: &${key} [${`*${'abcdefghi'[i]},`.repeat(9).slice(0, -1)}]`),
  ].join('\n');
  assert.throws(() => parseYamlText(bomb), /alias/i);
});

test('a body of another type is rejected', () => {
  assert.throws(
    () => parseBody(Buffer.from('x'), 'text/plain', { kind: 'Pod', builtIn: true }),
    (error) => error instanceof ApiError && error.code === 415,
  );
  assert.equal(mediaType('Application/JSON; charset=utf-8'), 'application/json');
  assert.deepEqual(parseBody(Buffer.from('{}'), '', { kind: 'Pod', builtIn: true }), {});
});

test('invalid JSON is reported with the messages of Go', () => {
  const body = Buffer.from('{nope}');
  const why = "invalid character 'n' looking for beginning of object key string";
  assert.throws(
    () => parseBody(body, '', { kind: 'ConfigMap', builtIn: true }),
    new ApiError(
      400,
      'BadRequest',
      `the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: ${why} ({nope})`,
    ),
  );
  assert.throws(() => parsePatch(body), new ApiError(400, 'BadRequest', `error decoding patch: ${why}`));
  assert.throws(() => parsePatch(body, { messagePrefix: '' }), new ApiError(400, 'BadRequest', why));
});

test('a continue token survives encoding', () => {
  const token = { revision: 7, after: 'ns/name' };
  assert.deepEqual(decodeContinue(encodeContinue(token)), token);
  for (const bad of [
    '',
    '!',
    Buffer.from('{}').toString('base64url'),
    Buffer.from('null').toString('base64url'),
    Buffer.from('{"v":"meta.k8s.io/v1","rv":"x","start":"a"}').toString('base64url'),
  ]) {
    assert.throws(() => decodeContinue(bad), ApiError, bad);
  }
});

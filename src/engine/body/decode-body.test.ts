import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseBody, parsePatch, parseYamlText } from '#engine/body/decode-body.ts';
import { mediaType } from '#engine/encoding/media-types.ts';
import { ApiError } from '#kube/api-error.ts';

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

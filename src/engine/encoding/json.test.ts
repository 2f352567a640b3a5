import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NestingError } from '#engine/encoding/json-bounds.ts';
import { parseJson } from '#engine/encoding/json.ts';

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

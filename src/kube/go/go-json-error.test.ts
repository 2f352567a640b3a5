import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { findGoJsonError } from '#kube/go/go-json-error.ts';

const END = 'unexpected end of JSON input';
const KEY = 'looking for beginning of object key string';
const VALUE = 'looking for beginning of value';

/** The messages of encoding/json in Go 1.23. */
const cases: Record<string, string | undefined> = {
  '': END,
  '  ': END,
  '{': END,
  '{"a"': END,
  '{"a":': END,
  '{"a":1': END,
  '[': END,
  '[1,': END,
  '"a': END,
  '"\\u00': END,
  tru: END,
  '-': END,
  '1.': END,
  '1e': END,
  '{nope}': `invalid character 'n' ${KEY}`,
  '{nope': `invalid character 'n' ${KEY}`,
  '{,}': `invalid character ',' ${KEY}`,
  '{"a":1,}': `invalid character '}' ${KEY}`,
  "{'a':1}": `invalid character '\\'' ${KEY}`,
  '{"a" 1}': `invalid character '1' after object key`,
  '{"a":1 "b":2}': `invalid character '"' after object key:value pair`,
  '{"a":1]': `invalid character ']' after object key:value pair`,
  '{"a":}': `invalid character '}' ${VALUE}`,
  nope: `invalid character 'o' in literal null (expecting 'u')`,
  trüe: `invalid character 'Ã' in literal true (expecting 'u')`,
  falsy: `invalid character 'y' in literal false (expecting 'e')`,
  yes: `invalid character 'y' ${VALUE}`,
  '[1,]': `invalid character ']' ${VALUE}`,
  '[1 2]': `invalid character '2' after array element`,
  '[1}': `invalid character '}' after array element`,
  '{} {}': `invalid character '{' after top-level value`,
  '01': `invalid character '1' after top-level value`,
  '-x': `invalid character 'x' in numeric literal`,
  '1.x': `invalid character 'x' after decimal point in numeric literal`,
  '1e+x': `invalid character 'x' in exponent of numeric literal`,
  '"a\nb"': `invalid character '\\n' in string literal`,
  '"a\u0001b"': `invalid character '\\x01' in string literal`,
  '"\\x"': `invalid character 'x' in string escape code`,
  '"\\u00g0"': `invalid character 'g' in \\u hexadecimal character escape`,
  '\ufeff{}': `invalid character 'ï' ${VALUE}`,
  ['['.repeat(10_001)]: 'exceeded max depth',
  '{"a":[1,-0.5e+7,{},[],"\\u00e9\\n",true,false,null]}': undefined,
};

for (const [text, want] of Object.entries(cases)) {
  test(`${JSON.stringify(text.slice(0, 40))}: ${want ?? 'is valid JSON'}`, () => {
    assert.equal(findGoJsonError(Buffer.from(text)), want);
  });
}

test('finds an error exactly if JSON.parse does', () => {
  const piece = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    'a',
    '\\',
    'u',
    '0',
    '1',
    '-',
    '.',
    'e',
    ' ',
    'null',
    '"a"',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const text = pieces.join('');
      assert.equal(findGoJsonError(Buffer.from(text)) === undefined, isJson(text), text);
    }),
    { numRuns: 2000 },
  );
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

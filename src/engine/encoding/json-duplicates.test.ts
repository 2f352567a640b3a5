import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { mayHaveDuplicates, findDuplicateFields } from '#engine/encoding/json-duplicates.ts';
import { parseRequestJson } from '#engine/encoding/json.ts';

const cases: Record<string, { text: string; unknown?: string[]; want: string[] }> = {
  'nothing twice': { text: '{"a":{"b":1},"c":[{"b":1},{"b":2}]}', want: [] },
  'a field of the object': { text: '{"a":1,"b":2,"a":3}', want: ['duplicate a'] },
  'a field below': { text: '{"spec":{"size":1,"size":2}}', want: ['duplicate spec.size'] },
  'a field in a list': { text: '{"a":[{"b":1},{"b":1,"b":2}]}', want: ['duplicate a[1].b'] },
  'three occurrences are reported once': { text: '{"a":1,"a":2,"a":3}', want: ['duplicate a'] },
  'duplicates within a duplicate': { text: '{"a":{"b":1},"a":{"b":1,"b":2}}', want: ['duplicate a', 'duplicate a.b'] },
  'spaces before the colons': { text: '{ "a" : 1 ,\n "b"\t: [ ] , "a" : { } }', want: ['duplicate a'] },
  'keys that differ only in escapes': { text: '{"a":1,"\\u0061":2}', want: ['duplicate a'] },
  'keys with quotes and backslashes': { text: '{"\\"":1,"\\\\":2,"\\"":3}', want: ['duplicate "'] },
  'a string that contains JSON': { text: '{"a":"{\\"b\\":1,\\"b\\":2}","c":"d\\\\"}', want: [] },
  '__proto__ is inert': { text: '{"__proto__":1,"a":2}', want: [] },
  'numbers, words and empty lists': {
    text: '[1.5e3,true,null,[],{},"",{"a":-1,"a":false}]',
    want: ['duplicate [6].a'],
  },
  'duplicates between unknown fields, but not within them': {
    text: '{"x":{"y":1,"y":2},"a":1,"a":2,"z":0,"z":1}',
    unknown: ['x', 'z'],
    want: ['unknown x', 'duplicate a', 'unknown z'],
  },
};

describe('findDuplicateFields', () => {
  for (const [name, { text, unknown = [], want }] of Object.entries(cases)) {
    test(name, () => {
      const found = findDuplicateFields(text, new Set(unknown)).map(({ problem, path }) => `${problem} ${path}`);
      assert.deepEqual(found, want);
    });
  }
});

describe('mayHaveDuplicates', () => {
  for (const [name, { text, want }] of Object.entries(cases)) {
    test(name, () => {
      let asked = false;
      parseRequestJson(text, {
        bytes: Buffer.from(text),
        mayHaveDuplicates: () => {
          asked = true;
        },
      });
      if (want.length > 0) assert.equal(asked, true);
      else if (!text.includes('__proto__')) assert.equal(asked, false);
    });
  }

  test('the last of several values counts', () => assert.deepEqual(parseRequestJson('{"a":1,"a":2}'), { a: 2 }));

  test('ignores colons and quotes in strings', () => {
    const value = { 'a"': '":"', 'b\\': '\\":', c: ['" :', 'a:', '\\\\":'] };
    assert.equal(mayHaveDuplicates(Buffer.from(JSON.stringify(value)), 3), false);
    assert.equal(mayHaveDuplicates(Buffer.from(JSON.stringify(value, null, 2)), 3), false);
  });

  test('reports a false positive for a string that begins with a colon', () => {
    assert.equal(mayHaveDuplicates(Buffer.from('{"a":"::1"}'), 1), true);
    assert.deepEqual(findDuplicateFields('{"a":"::1"}'), []);
  });
});

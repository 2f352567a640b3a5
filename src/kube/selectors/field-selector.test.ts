import assert from 'node:assert/strict';
import test from 'node:test';
import * as fc from 'fast-check';
import { isApiError } from '#kube/api-error.ts';
import { type FieldRequirement, matchesFields, parseFieldSelector } from '#kube/selectors/field-selector.ts';

const good: Record<string, FieldRequirement[]> = {
  '': [],
  ',': [],
  'a=b': [{ field: 'a', operator: '=', value: 'b' }],
  'a==b': [{ field: 'a', operator: '=', value: 'b' }],
  'a!=b': [{ field: 'a', operator: '!=', value: 'b' }],
  'metadata.name=x,a!=': [
    { field: 'a', operator: '!=', value: '' },
    { field: 'metadata.name', operator: '=', value: 'x' },
  ],
  'a=1\\,2\\=3\\\\': [{ field: 'a', operator: '=', value: '1,2=3\\' }],
};

for (const [text, want] of Object.entries(good)) {
  test(`parses ${JSON.stringify(text)}`, () => assert.deepEqual(parseFieldSelector(text), want));
}

const bad: Record<string, string> = {
  abc: "invalid selector: 'abc'; can't understand 'abc'",
  'a=b,c': "invalid selector: 'a=b,c'; can't understand 'c'",
  'a=b=c': 'invalid field selector: unescaped character in value: 61',
  'a=\\x': 'invalid field selector: invalid escape sequence: \\x',
  'a=b\\': 'invalid field selector: invalid escape sequence: \\',
};

for (const [text, message] of Object.entries(bad)) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => parseFieldSelector(text),
      (error: Error) => isApiError(error, 'BadRequest') && error.message === message,
    );
  });
}

const requirement = fc.record({
  field: fc.stringMatching(/^[a-z][a-zA-Z.]{0,10}$/),
  operator: fc.constantFrom('=' as const, '!=' as const),
  value: fc.string(),
});

/** Escapes each value, as clients do. */
const formatFieldSelector = (requirements: readonly FieldRequirement[]) =>
  requirements.map(({ field, operator, value }) => `${field}${operator}${value.replace(/[\\,=]/g, '\\$&')}`).join(',');

test('parses a formatted selector to the same terms', () => {
  fc.assert(
    fc.property(fc.array(requirement, { maxLength: 4 }), (requirements) => {
      const terms = (list: readonly FieldRequirement[]) => list.map((item) => JSON.stringify(item)).sort();
      const parsed = parseFieldSelector(formatFieldSelector(requirements)).map(({ field, operator, value }) => ({
        field,
        operator,
        value,
      }));
      assert.deepEqual(terms(parsed), terms(requirements));
    }),
  );
});

test('matches only if all terms match', () => {
  const read = (field: string) => ({ a: '1', b: '2' })[field] ?? '';
  assert.equal(matchesFields(parseFieldSelector('a=1,b!=1'), read), true);
  assert.equal(matchesFields(parseFieldSelector('a=1,b!=2'), read), false);
  assert.equal(matchesFields(parseFieldSelector('c='), read), true);
  assert.equal(matchesFields([], read), true);
});

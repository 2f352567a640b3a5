import assert from 'node:assert/strict';
import { test } from 'node:test';
import { escapeFieldName, unescapeFieldName } from '#cel/check/field-names.ts';

const pairs: Record<string, { name: string; escaped: string }> = {
  'a plain name stays': { name: 'replicas', escaped: 'replicas' },
  'single underscores stay': { name: '_a_b', escaped: '_a_b' },
  'a reserved word': { name: 'namespace', escaped: '__namespace__' },
  'a word that contains a reserved word': { name: 'inner', escaped: 'inner' },
  'a dash': { name: 'x-y', escaped: 'x__dash__y' },
  'dots and slashes': { name: 'a.b/c', escaped: 'a__dot__b__slash__c' },
  'two underscores': { name: 'a__b', escaped: 'a__underscores__b' },
  'three underscores': { name: 'a___b', escaped: 'a__underscores___b' },
  'a name that looks like an escape': { name: '__dot__', escaped: '__underscores__dot__underscores__' },
  'a leading dash': { name: '-x', escaped: '__dash__x' },
};

for (const [sentence, { name, escaped }] of Object.entries(pairs)) {
  test(`field names are escaped and unescaped: ${sentence}`, () => {
    assert.equal(escapeFieldName(name), escaped);
    assert.equal(unescapeFieldName(escaped), name);
  });
}

test('names that no identifier can represent are not escaped', () => {
  for (const name of ['', '1a', 'a b', 'a$', 'ä', '$ref']) assert.equal(escapeFieldName(name), undefined, name);
});

test('unknown escapes are not unescaped', () => {
  for (const name of ['a__x__', '__namespace__a', '__foo__']) assert.equal(unescapeFieldName(name), undefined, name);
});

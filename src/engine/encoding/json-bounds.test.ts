import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  assertBounds,
  assertNesting,
  countValues,
  NestingError,
  ValueCountError,
} from '#engine/encoding/json-bounds.ts';
import { MAX_OBJECT_DEPTH, MAX_OBJECT_VALUES } from '#engine/request/limits.ts';

const padding = ' '.repeat(5000);
const nested = (levels: number) => `${padding}${'['.repeat(levels)}${']'.repeat(levels)}`;
const items = (count: number) => `[${Array.from({ length: count }, () => '0').join(',')}]${padding}`;

const cases: Record<string, { text: string; error?: typeof NestingError | typeof ValueCountError }> = {
  'as deep as allowed': { text: nested(MAX_OBJECT_DEPTH) },
  'too deep': { text: nested(MAX_OBJECT_DEPTH + 1), error: NestingError },
  'only opened': { text: '['.repeat(1_000_000), error: NestingError },
  'as many items as allowed': { text: items(MAX_OBJECT_VALUES) },
  'too many items': { text: items(MAX_OBJECT_VALUES + 1), error: ValueCountError },
  'too many empty maps': { text: `[${'{},'.repeat(MAX_OBJECT_VALUES)}0]`, error: ValueCountError },
  'brackets and commas in a text': { text: JSON.stringify('[,'.repeat(100_000)) },
  'escaped quotes in a text': { text: JSON.stringify('"[,'.repeat(100_000)) },
  'a text without an end': { text: `"${'[,'.repeat(100_000)}` },
};

describe('the bounds of a JSON text', () => {
  for (const [name, { text, error }] of Object.entries(cases)) {
    it(name, () => {
      if (error === undefined) assertBounds(text);
      else assert.throws(() => assertBounds(text), error);
      if (error === NestingError) assert.throws(() => assertNesting(text), NestingError);
      else assertNesting(text);
    });
  }
});

describe('countValues counts like assertBounds', () => {
  const values: Record<string, { value: unknown; want: number }> = {
    'a text': { value: 'x', want: 0 },
    'an empty map': { value: {}, want: 1 },
    'maps in a list': { value: [{ a: 1, b: 2 }, {}], want: 5 },
    'many items': { value: Array.from({ length: 2 * MAX_OBJECT_VALUES }, () => ({})), want: MAX_OBJECT_VALUES + 1 },
  };
  for (const [name, { value, want }] of Object.entries(values)) {
    it(name, () => {
      assert.equal(countValues(value), want);
      const count = (JSON.stringify(value).match(/[[{,]/g) ?? []).length;
      assert.equal(want, Math.min(count, MAX_OBJECT_VALUES + 1));
    });
  }
});

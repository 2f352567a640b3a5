import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { formatValue, outputFlag } from '#cli/output-format.ts';
import { replaceControlsInLines } from '#lib/terminal/display-width.ts';

const hostile = { name: 'a\u001b[2J', list: ['\u009b1m', 'x\u202ey\u007f', 'line 1\nline 2\n'], 'key\u009b': 1 };
for (const format of ['json', 'yaml'] as const) {
  test(`${format} has no control characters, and the value stays the same`, () => {
    const text = formatValue(hostile, format);
    assert.equal(replaceControlsInLines(text), text);
    assert.deepEqual(parse(text), hostile);
  });
}

test('ordinary YAML has no quotes', () => {
  assert.equal(formatValue({ a: 'b', list: ['c d'] }, 'yaml'), 'a: b\nlist:\n  - c d');
});

test('refuses other formats', () => {
  assert.throws(() => outputFlag.parse('xml'), {
    name: 'UsageError',
    message: 'unable to match a printer suitable for the output format "xml", expected json or yaml',
  });
});

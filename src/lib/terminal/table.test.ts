import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alignedTable, growingTable } from '#lib/terminal/table.ts';

test('aligns columns like kubectl, without spaces at the end', () => {
  const rows = [
    ['NAME', 'STATUS', 'NOTE'],
    ['db', 'Running', ''],
    ['a-long-name', '', 'new'],
  ];
  assert.equal(
    alignedTable(rows),
    ['NAME          STATUS    NOTE', 'db            Running', 'a-long-name             new'].join('\n'),
  );
});

test('aligns by what is seen: wide characters, combining marks and emoji', () => {
  const rows = [
    ['日本', '1'],
    ['e\u0301', '2'],
    ['🚀', '3'],
    ['four', '4'],
  ];
  const want = ['日本   1', 'e\u0301      2', '🚀     3', 'four   4'];
  assert.deepEqual(alignedTable(rows).split('\n'), want);
});

test('replaces control characters in cells, and counts no colours', () => {
  const rows = [
    ['a\u001b[2J', 'x\ny'],
    ['b', 'z'],
  ];
  const paint = (cell: string, { column }: { column: number }) => (column === 0 ? `\u001b[31m${cell}\u001b[39m` : cell);
  assert.equal(
    alignedTable(rows, { gap: 1, indent: '  ', paint }),
    '  \u001b[31ma?[2J \u001b[39mx?y\n  \u001b[31mb     \u001b[39mz',
  );
});

test('formats a hundred thousand rows', () => {
  const rows = Array.from({ length: 100_000 }, (_, i) => [`vm-${i}`, 'Running']);
  assert.equal(alignedTable(rows).split('\n').length, rows.length);
});

test('a growing table widens its columns up to a maximum', () => {
  const row = growingTable([2, 0], 5);
  assert.equal(row(['a', 'b']), 'a   b');
  assert.equal(row(['abcd', 'b']), 'abcd  b');
  assert.equal(row(['a', 'b']), 'a     b');
  assert.equal(row(['much longer', 'b']), 'much longer  b');
  assert.equal(row(['a', 'b']), 'a      b');
});

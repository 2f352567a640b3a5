import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkSeedsPage } from '#test/tidy/seeds-page.ts';

const files = [
  { path: 'src/a.ts', text: '' },
  { path: 'src/a.test.ts', text: "test('keeps the uuid', () => {});" },
  { path: 'bench/a.ts', text: '' },
];
const HEAD =
  '| Requirement | Implemented in | Unit | Plane | Guest | Different on purpose |\n|---|---|---|---|---|---|\n';
const IMPLEMENTED = '[a](../src/a.ts)';

const cases: Record<string, { readonly row: string; readonly want: readonly string[] }> = {
  'a requirement with its test': {
    row: `| R | ${IMPLEMENTED} | [table](../src/a.test.ts "keeps the uuid") | – | – | |`,
    want: [],
  },
  'a requirement that is measured': { row: '| R | [bench](../bench/a.ts) | – | – | – | |', want: [] },
  'a test that does not exist': {
    row: `| R | ${IMPLEMENTED} | [table](../src/a.test.ts "loses the uuid") | – | – | |`,
    want: ['3: names the test "loses the uuid", which src/a.test.ts does not have'],
  },
  'a file that does not exist': {
    row: `| R | ${IMPLEMENTED} | [table](../src/b.test.ts) | – | – | |`,
    want: ['3: links to src/b.test.ts, which does not exist'],
  },
  'a requirement without a test': {
    row: `| R | ${IMPLEMENTED} | – | – | – | |`,
    want: ['3: names neither a test nor a benchmark'],
  },
  'a row that lacks a cell': {
    row: `| R | ${IMPLEMENTED} | [table](../src/a.test.ts) | – | |`,
    want: ['3: has 5 cells, not 6'],
  },
};
for (const [name, { row, want }] of Object.entries(cases)) {
  test(`the page of seeds: ${name}`, () => {
    const { requirements, problems } = checkSeedsPage({ path: 'docs/seeds.md', text: HEAD + row }, files);
    assert.deepEqual({ requirements, problems }, { requirements: 1, problems: want });
  });
}

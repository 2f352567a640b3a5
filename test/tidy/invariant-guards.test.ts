import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkInvariantGuards } from '#test/tidy/invariant-guards.ts';

const files = [
  { path: 'src/a.ts', text: '' },
  { path: 'src/a.test.ts', text: "test('keeps the uuid', () => {});" },
];
const guarded = '| 1 | [uuid](src/a.test.ts "keeps the uuid") |';

const cases: Record<string, { readonly rows: readonly string[]; readonly want: readonly string[] }> = {
  'an invariant with its test': { rows: [guarded], want: [] },
  'an invariant without a row': { rows: [], want: ['invariant 1 has 0 rows in the table of guards, not 1'] },
  'an invariant with two rows': {
    rows: [guarded, guarded],
    want: ['invariant 1 has 2 rows in the table of guards, not 1'],
  },
  'an invariant that names no test': { rows: ['| 1 | [a](src/a.ts) |'], want: ['invariant 1 names no test'] },
  'a row without an invariant': {
    rows: [guarded, guarded.replace('1', '2')],
    want: ['invariant 2 has guards but does not exist'],
  },
  'a file that does not exist': {
    rows: ['| 1 | [b](src/b.test.ts) |'],
    want: ['invariant 1 links to src/b.test.ts, which does not exist'],
  },
  'a test that does not exist': {
    rows: ['| 1 | [a](src/a.test.ts "loses the uuid") |'],
    want: ['invariant 1 names the test "loses the uuid", which src/a.test.ts does not have'],
  },
};
for (const [name, { rows, want }] of Object.entries(cases)) {
  test(`the guards of invariants: ${name}`, () => {
    const text = `# A\n\n## Invariants\n\n1. **A uuid stays.**\n\n### Guards\n\n${rows.join('\n')}\n\n## Fields\n\n| 9 | x |\n`;
    const { invariants, problems } = checkInvariantGuards({ path: 'ARCHITECTURE.md', text }, files);
    assert.deepEqual({ invariants, problems }, { invariants: 1, problems: want });
  });
}

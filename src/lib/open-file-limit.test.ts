import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openFileLimit, parseOpenFileLimit } from '#lib/open-file-limit.ts';

const HEAD = 'Limit                     Soft Limit           Hard Limit           Units     \n';
const cases: Record<string, { text: string; want: number }> = {
  'a limit': {
    text: `${HEAD}Max open files            20000                20000                files     \n`,
    want: 20_000,
  },
  'no limit': {
    text: `${HEAD}Max open files            unlimited            unlimited            files     \n`,
    want: Infinity,
  },
  'another system': { text: '', want: 1024 },
};

for (const [name, { text, want }] of Object.entries(cases)) {
  test(`the limit of open files: ${name}`, () => assert.equal(parseOpenFileLimit(text), want));
}

test('this process may open files', () => assert.ok(openFileLimit() > 10));

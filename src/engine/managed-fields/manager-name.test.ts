import assert from 'node:assert/strict';
import { test } from 'node:test';
import { managerName, unprintable } from '#engine/managed-fields/manager-name.ts';

const names: Record<string, readonly [manager: string, userAgent: string, want: string]> = {
  'what the request says': ['me', 'kubectl/v1.32', 'me'],
  'what comes before the version': ['', 'kubectl/v1.32 (linux/amd64)', 'kubectl'],
  'all of it, where there is no version': ['', 'curl', 'curl'],
  'nobody, where nothing is said': ['', '', 'unknown'],
  'nobody, where only a version is said': ['', '/v1', 'unknown'],
  'without what cannot be printed': ['', 'a\u0007b\u200bc d/1', 'abc d'],
  'no more than 128 bytes': ['', 'x'.repeat(200), 'x'.repeat(128)],
  'no half of a character': ['', `${'x'.repeat(127)}ü`, 'x'.repeat(127)],
};

for (const [what, [manager, userAgent, want]] of Object.entries(names)) {
  test(`the manager is ${what}`, () => assert.equal(managerName(manager, userAgent), want));
}

test('places of unprintable characters are counted in bytes', () => {
  assert.deepEqual(unprintable('ü\na\u0000'), [
    { character: '\n', position: 2 },
    { character: '\u0000', position: 4 },
  ]);
});

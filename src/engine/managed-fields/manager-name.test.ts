import assert from 'node:assert/strict';
import { test } from 'node:test';
import { managerName, findUnprintable } from '#engine/managed-fields/manager-name.ts';

const names: Record<string, readonly [manager: string, userAgent: string, want: string]> = {
  'the requested name': ['me', 'kubectl/v1.32', 'me'],
  'the text before the version': ['', 'kubectl/v1.32 (linux/amd64)', 'kubectl'],
  'the whole User-Agent without a version': ['', 'curl', 'curl'],
  'unknown without a User-Agent': ['', '', 'unknown'],
  'unknown with a version only': ['', '/v1', 'unknown'],
  'without unprintable characters': ['', 'a\u0007b\u200bc d/1', 'abc d'],
  'truncated to 128 bytes': ['', 'x'.repeat(200), 'x'.repeat(128)],
  'truncated between characters': ['', `${'x'.repeat(127)}ü`, 'x'.repeat(127)],
};

for (const [what, [manager, userAgent, want]] of Object.entries(names)) {
  test(`the manager is ${what}`, () => assert.equal(managerName(manager, userAgent), want));
}

test('positions of unprintable characters are in bytes', () => {
  assert.deepEqual(findUnprintable('ü\na\u0000'), [
    { character: '\n', position: 2 },
    { character: '\u0000', position: 4 },
  ]);
});

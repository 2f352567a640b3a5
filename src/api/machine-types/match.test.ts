import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matchesMachineType } from '#api/machine-types/match.ts';

const cases: Record<string, [glob: string, type: string, want: boolean]> = {
  'a type as it is': ['*rhel8.*', 'pc-q35-rhel8.2.0', true],
  'the glob of the proposal, with a dash': ['*rhel-8.*', 'pc-q35-rhel8.2.0', true],
  'a dashed glob and a newer type': ['*rhel-8.*', 'pc-q35-rhel9.2.0', false],
  'the word alone before the version': ['*glob-8.*', 'smth-glob8.10.0', true],
  'another version of it': ['*glob8.*', 'smth-glob9.10.0', false],
  'a version without a word': ['pc-q35-6.*', 'pc-q35-6.2', true],
  'the whole type, not a part': ['q35-6', 'pc-q35-6.2', false],
  'an alias has no version to set apart': ['*-35', 'q35', false],
  'nor has the middle of a type': ['pc-q-35-*', 'pc-q35-6.2', false],
  'a class of characters': ['pc-q35-[67].*', 'pc-q35-7.2', true],
  'nothing is no type': ['*', '', false],
  'a malformed glob matches nothing': ['[--', 'pc-q35-6.2', false],
};

for (const [name, [glob, type, want]] of Object.entries(cases)) {
  test(`${name}: ${glob} ${want ? 'means' : 'does not mean'} ${type || 'none'}`, () => {
    assert.equal(matchesMachineType(glob, type), want);
  });
}

test('a glob of many stars comes to an end', () => {
  const glob = `${'*a'.repeat(100)}b`;
  assert.equal(matchesMachineType(glob, 'a'.repeat(5000)), false);
});

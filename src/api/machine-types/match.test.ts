import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matchesMachineType } from '#api/machine-types/match.ts';

const cases: Record<string, [glob: string, type: string, want: boolean]> = {
  'a type without a dash': ['*rhel8.*', 'pc-q35-rhel8.2.0', true],
  'a glob with a dash before the version': ['*rhel-8.*', 'pc-q35-rhel8.2.0', true],
  'a dashed glob and a newer type': ['*rhel-8.*', 'pc-q35-rhel9.2.0', false],
  'only the word before the version gets a dash': ['*glob-8.*', 'smth-glob8.10.0', true],
  'another version': ['*glob8.*', 'smth-glob9.10.0', false],
  'a version without a word': ['pc-q35-6.*', 'pc-q35-6.2', true],
  'a glob that matches only a part': ['q35-6', 'pc-q35-6.2', false],
  'an alias without a version': ['*-35', 'q35', false],
  'the middle of a type has no version': ['pc-q-35-*', 'pc-q35-6.2', false],
  'a class of characters': ['pc-q35-[67].*', 'pc-q35-7.2', true],
  'an empty type': ['*', '', false],
  'a malformed glob matches nothing': ['[--', 'pc-q35-6.2', false],
};

for (const [name, [glob, type, want]] of Object.entries(cases)) {
  test(`${name}: ${glob} ${want ? 'matches' : 'does not match'} ${type || 'none'}`, () => {
    assert.equal(matchesMachineType(glob, type), want);
  });
}

test('matching a glob with many stars terminates', () => {
  const glob = `${'*a'.repeat(100)}b`;
  assert.equal(matchesMachineType(glob, 'a'.repeat(5000)), false);
});

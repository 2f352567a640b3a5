/** Tests globs with the semantics of Go's path.Match. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matchesGlob, parseGlob } from '#api/validation/glob.ts';

const cases: [glob: string, text: string, want: boolean][] = [
  ['q35*', 'q35', true],
  ['q35*', 'pc-q35-7.2', false],
  ['pc-q35*', 'pc-q35-7.2', true],
  ['*rhel8.*', 'pc-q35-rhel8.2.0', true],
  ['*rhel-8.*', 'pc-q35-rhel8.2.0', false],
  ['a*b*c', 'axxbxbyyc', true],
  ['a*b*c', 'axxbxbyy', false],
  ['a?c', 'abc', true],
  ['a?c', 'ac', false],
  ['[a-c]x', 'bx', true],
  ['[^a-c]x', 'bx', false],
  ['[^a-c]x', 'dx', true],
  ['[\\-x]', '-', true],
  ['\\*', '*', true],
  ['\\*', 'x', false],
  ['*', 'a/b', false],
  ['', '', true],
  ['', 'a', false],
  ['**', 'abc', true],
];

for (const [text, name, want] of cases) {
  test(`${text} ${want ? 'matches' : 'does not match'} ${name}`, () => {
    const glob = parseGlob(text);
    assert.ok(glob);
    assert.equal(matchesGlob(glob, name), want);
  });
}

for (const text of ['[--', '[', '[]', '[a', '[a-', 'a\\', '[-x]', '[^]']) {
  test(`${text} is malformed`, () => assert.equal(parseGlob(text), undefined));
}

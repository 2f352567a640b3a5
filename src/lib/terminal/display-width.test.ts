import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  cutStartToWidth,
  cutToWidth,
  displayWidth,
  escapeControls,
  padToWidth,
  replaceControls,
  replaceControlsInLines,
} from '#lib/terminal/display-width.ts';

const widths: Record<string, [text: string, want: number]> = {
  'no text': ['', 0],
  ASCII: ['vm-1', 4],
  'a composed letter': ['é', 1],
  'a combining mark': ['e\u0301', 1],
  ideographs: ['日本', 4],
  'syllables of Hangul': ['한국', 4],
  'syllables of Hangul in parts': ['\u1112\u1161\u11ab', 2],
  'half-width Katakana': ['ｱｲ', 2],
  'full-width letters': ['ＶＭ', 4],
  'full-width punctuation': ['。', 2],
  emoji: ['🚀', 2],
  'an emoji of several characters': ['👨‍👩‍👧', 2],
  'an emoji with a skin tone': ['👍🏽', 2],
  'a flag': ['🇩🇪', 2],
  'a keycap': ['1️⃣', 2],
  'a character with the emoji selector': ['☺️', 2],
  'the same character without it': ['☺', 1],
  'a joiner between letters': ['a\u200db', 2],
  'a byte order mark': ['\ufeffa', 1],
  colours: ['\u001b[31mred\u001b[0m', 3],
  'a link': ['\u001b]8;;http://a\u0007é\u001b]8;;\u0007', 1],
};
for (const [title, [text, want]] of Object.entries(widths)) {
  test(`the width of ${title}`, () => assert.equal(displayWidth(text), want));
}

test('pads to a width', () => {
  assert.equal(padToWidth('日本', 6), '日本  ');
  assert.equal(padToWidth('longer', 3), 'longer');
});

test('cuts at a width, and never a character in half', () => {
  assert.equal(cutToWidth('日本', 3), '日');
  assert.equal(cutToWidth('e\u0301a', 1), 'e\u0301');
  assert.equal(cutToWidth('abc', 3), 'abc');
  assert.equal(cutToWidth('abc', 0), '');
});

test('cuts the start, and keeps the end', () => {
  assert.equal(cutStartToWidth('/images/fedora.qcow2', 15), '...fedora.qcow2');
  assert.equal(cutStartToWidth('日本語', 5), '...語');
  assert.equal(cutStartToWidth('日本語', 4), '...');
  assert.equal(cutStartToWidth('abc', 3), 'abc');
});

test('replaces what would control the terminal', () => {
  const hostile = 'a\u001b[2J\u009b1m\u0007b\u202ec\u007f\n\t';
  assert.equal(replaceControls(hostile), 'a?[2J?1m?b?c???');
  assert.equal(replaceControlsInLines(hostile), 'a?[2J?1m?b?c?\n\t');
});

test('escapes the same in JSON, without a change of the value', () => {
  const value = { name: 'a\u001b[2J\u009b1m\u202e\u007f', é: 'ü\n' };
  const json = escapeControls(JSON.stringify(value, undefined, 2));
  assert.equal(replaceControlsInLines(json), json);
  assert.deepEqual(JSON.parse(json), value);
});

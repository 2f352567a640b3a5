/** Measures, pads and cuts text by the columns that it takes on a terminal, and replaces what would control it. Pure. */
import { stripVTControlCharacters } from 'node:util';

/**
 * Characters that take two columns: East Asian Wide and Fullwidth (Unicode TR 11), which regular expressions have no
 * property for, as the scripts and blocks that they belong to.
 */
const WIDE =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\p{Script=Yi}\p{Script=Tangut}\p{Script=Nushu}\p{Script=Khitan_Small_Script}\u2329\u232a\u2630-\u2637\u268a-\u268f\u2ff0-\u303e\u3040-\u4dff\uac00-\ud7a3\ufe10-\ufe19\ufe30-\ufe6b\uff01-\uff60\uffe0-\uffe6\u{1d300}-\u{1d376}\u{1f200}-\u{1f265}]/u;
/** Half-width forms of these scripts. */
const HALF_WIDTH = /^[\uff61-\uffdc]/u;
const EMOJI = /^\p{Emoji_Presentation}|^\p{Extended_Pictographic}\ufe0f|^[\d#*]\ufe0f?\u20e3/u;
/** Marks, joiners, Hangul vowels and other characters that take no column of their own. */
const ZERO_WIDTH = /^[\p{Mn}\p{Me}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u1160-\u11ff\ud7b0-\ud7fb]+$/u;
const ASCII = /^[\u0020-\u007e]*$/;

let segmenter: Intl.Segmenter | undefined;

/** Splits text into what a reader sees as characters. Most output has only ASCII, and a segmenter takes 20 ms to create. */
function graphemesOf(text: string): string[] {
  if (ASCII.test(text)) return [...text];
  segmenter ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' });
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

/** Returns the number of columns that the text takes on a terminal. Colours take none. */
export function displayWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  const plain = stripVTControlCharacters(text);
  let width = 0;
  for (const grapheme of graphemesOf(plain)) width += graphemeWidth(grapheme);
  return width;
}

function graphemeWidth(grapheme: string): number {
  if (ASCII.test(grapheme)) return 1;
  if (ZERO_WIDTH.test(grapheme)) return 0;
  if (EMOJI.test(grapheme)) return 2;
  return WIDE.test(grapheme) && !HALF_WIDTH.test(grapheme) ? 2 : 1;
}

/** Appends spaces until the text takes `width` columns. */
export function padToWidth(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - displayWidth(text)));
}

/** Cuts plain text, without colours, at `width` columns. A character that does not fit as a whole is left out. */
export function cutToWidth(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let [cut, left] = ['', width];
  for (const grapheme of graphemesOf(text)) {
    left -= graphemeWidth(grapheme);
    if (left < 0) break;
    cut += grapheme;
  }
  return cut;
}

/** Like cutToWidth, but keeps the end, which distinguishes paths: `...images/fedora.qcow2`. */
export function cutStartToWidth(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let [kept, left] = ['', width - DOTS.length];
  for (const grapheme of graphemesOf(text).toReversed()) {
    left -= graphemeWidth(grapheme);
    if (left < 0) break;
    kept = grapheme + kept;
  }
  return DOTS.slice(0, width) + kept;
}

const DOTS = '...';

// oxlint-disable-next-line no-control-regex -- these are the characters to find
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;
// oxlint-disable-next-line no-control-regex -- these are the characters to find
const CONTROLS_IN_LINES = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/**
 * Replaces control characters of a single line, such as a table cell, with `?`. Names and messages come from other users
 * and could otherwise move the cursor, change the terminal or reverse the direction of the text.
 */
export function replaceControls(text: string): string {
  return text.replace(CONTROLS, '?');
}

/** Like replaceControls, for text of several lines: keeps line breaks and tabs. */
export function replaceControlsInLines(text: string): string {
  return text.replace(CONTROLS_IN_LINES, '?');
}

/** Escapes the control characters that JSON and quoted YAML may have as they are; the value stays the same. */
export function escapeControls(text: string): string {
  return text.replace(CONTROLS_IN_LINES, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Bounds the nesting of JSON before it is parsed: recursive code cannot handle the values of a text of brackets. */

/** Reports whether lists and objects are nested deeper than the limit. The text need not be valid JSON. */
export function isNestedDeeper(text: string, limit: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '"') at = endOfString(text, at);
    else if (char === '[' || char === '{') depth++;
    else if (char === ']' || char === '}') depth--;
    if (depth > limit) return true;
  }
  return false;
}

/** Returns the position of the closing quote, or the end of the text. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at;
}

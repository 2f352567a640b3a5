/**
 * Checks XML before it is parsed: refuses what could harm a parser (depth, counts, DOCTYPE, entities) in one linear
 * pass. The parser itself checks whether the text is well-formed.
 */

export interface XmlLimits {
  readonly bytes: number;
  readonly depth: number;
  /** Elements, texts, comments, instructions, attributes. */
  readonly nodes: number;
  /** Attributes of one element. */
  readonly attributes: number;
}

export const XML_LIMITS: XmlLimits = { bytes: 8 * 1024 * 1024, depth: 64, nodes: 100_000, attributes: 64 };

/** The text is not well-formed XML, or uses something that we do not allow. */
export class XmlError extends Error {
  override name = 'XmlError';
  /** The line, counted from 1; undefined if the problem has no position. */
  readonly line: number | undefined;

  constructor(problem: string, line?: number, options?: ErrorOptions) {
    super(`Cannot read XML: ${line === undefined ? '' : `line ${line}: `}${problem}`, options);
    this.line = line;
  }
}

/** Matches what XML does not allow in any form: most control characters and lone surrogates. */
export const ILLEGAL_CHARACTER = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u;
const ENTITY = /^&(?:amp|lt|gt|quot|apos|#([0-9]{1,7})|#x([0-9a-fA-F]{1,6}));/;
const LONGEST_ENTITY = 12;

/** Throws an XmlError for the first thing that is not allowed. */
export function scanXml(text: string, limits: XmlLimits = XML_LIMITS): void {
  const illegal = ILLEGAL_CHARACTER.exec(text);
  if (illegal !== null) throw xmlErrorAt(text, illegal.index, 'there is a character that XML does not allow');
  let [at, depth, nodes] = [0, 0, 0];
  while (at < text.length) {
    const start = text.indexOf('<', at);
    const end = start === -1 ? text.length : start;
    if (end > at) nodes++;
    checkEntities(text, at, end);
    if (start === -1) break;
    if (++nodes > limits.nodes) throw xmlErrorAt(text, start, `there are more than ${limits.nodes} nodes`);
    const skipped = endOfOpaque(text, start);
    if (skipped !== undefined) {
      at = skipped;
      continue;
    }
    const tag = scanTag(text, start, limits);
    nodes += tag.attributes;
    if (text[start + 1] === '/') depth--;
    else if (!tag.isEmpty && ++depth > limits.depth) {
      throw xmlErrorAt(text, start, `elements are nested deeper than ${limits.depth}`);
    }
    at = tag.end;
  }
}

/** Returns the end of a comment, CDATA section or processing instruction, or undefined if a tag starts here. */
function endOfOpaque(text: string, start: number): number | undefined {
  for (const [open, close, what] of OPAQUE) {
    if (!text.startsWith(open, start)) continue;
    const end = text.indexOf(close, start + open.length);
    if (end === -1) throw xmlErrorAt(text, start, `${what} does not end`);
    return end + close.length;
  }
  if (text[start + 1] !== '!') return undefined;
  throw xmlErrorAt(text, start, 'DOCTYPE and other declarations are not allowed');
}

const OPAQUE = [
  ['<!--', '-->', 'a comment'],
  ['<![CDATA[', ']]>', 'a CDATA section'],
  ['<?', '?>', 'a processing instruction'],
] as const;

interface Tag {
  readonly end: number;
  readonly isEmpty: boolean;
  readonly attributes: number;
}

function scanTag(text: string, start: number, limits: XmlLimits): Tag {
  let attributes = 0;
  for (let at = start + 1; at < text.length; at++) {
    const char = text[at];
    if (char === '>') return { end: at + 1, isEmpty: text[at - 1] === '/', attributes };
    if (char === '<') throw xmlErrorAt(text, at, 'a tag begins within a tag');
    if (char !== '"' && char !== "'") continue;
    if (++attributes > limits.attributes) {
      throw xmlErrorAt(text, at, `an element has more than ${limits.attributes} attributes`);
    }
    const close = text.indexOf(char, at + 1);
    if (close === -1) throw xmlErrorAt(text, at, 'the value of an attribute does not end');
    checkEntities(text, at, close);
    at = close;
  }
  throw xmlErrorAt(text, start, 'a tag does not end');
}

function checkEntities(text: string, from: number, to: number): void {
  for (let at = text.indexOf('&', from); at !== -1 && at < to; at = text.indexOf('&', at + 1)) {
    const match = ENTITY.exec(text.slice(at, at + LONGEST_ENTITY));
    if (match === null) {
      throw xmlErrorAt(text, at, 'only the entities amp, lt, gt, quot, apos and numbers of characters are allowed');
    }
    const [, decimal, hex] = match;
    if (decimal === undefined && hex === undefined) continue;
    const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal);
    if (code > 0x10_ff_ff || ILLEGAL_CHARACTER.test(String.fromCodePoint(code))) {
      throw xmlErrorAt(text, at, `${match[0]} is not an XML character`);
    }
  }
}

function xmlErrorAt(text: string, index: number, problem: string): XmlError {
  let line = 1;
  for (let at = text.indexOf('\n'); at !== -1 && at < index; at = text.indexOf('\n', at + 1)) line++;
  return new XmlError(problem, line);
}

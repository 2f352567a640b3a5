/**
 * YAML from outside, in time that grows with its length: the library's own `parse` looks through the whole document for
 * every alias, formats every error with its line, and writes keys that are collections out again at each level. A
 * kilobyte could take it seconds, 256 of them a minute. What is left are some microseconds for each word and sign, so
 * that their number is bounded, too.
 */
import { Composer, isAlias, isMap, isPair, isScalar, isSeq, Lexer, LineCounter, Parser, type Document } from 'yaml';

/** More than any object may have, and little enough for recursion. */
const MAX_LEVELS = 300;
/** The parser has up to three open collections for each level. */
const MAX_OPEN = 3 * MAX_LEVELS;
/** Words, signs and spaces: a usual text of 128 KiB has as many, and they take 50 to 100 ms. */
const MAX_LEXEMES = 30_000;
/** Values that all aliases of a text together may stand for. */
const MAX_ALIASED = 10_000;

const tooDeep = () => new Error(`exceeded max depth of ${MAX_LEVELS}`);

export function parseYaml(text: string): unknown {
  return yamlValue(parseYamlDocument(text));
}

/** Throws the first fault of the text. Of keys that are there twice the last one counts. */
export function parseYamlDocument(text: string, lines = new LineCounter()): Document {
  let first: Error | undefined;
  const refuse = (offset: number, message: string): never => {
    const { line, col } = lines.linePos(offset);
    // The composer catches it and calls again, from each collection that it is in.
    throw (first ??= new Error(`${message} at line ${line}, column ${col}`));
  };
  const composer = new Composer({ uniqueKeys: false });
  // It would go on and make an Error of each fault, with its stack.
  Object.assign(composer, {
    onError(
      at: number | readonly [number, number] | { offset: number },
      _code: string,
      message: string,
      warns?: boolean,
    ) {
      if (warns !== true) refuse(typeof at === 'number' ? at : 'offset' in at ? at.offset : at[0], message);
    },
  });
  let found: Document | undefined;
  for (const document of composer.compose(tokensOf(text, lines), true, text.length)) {
    if (found !== undefined) throw new Error('source contains multiple documents');
    const [fault] = document.errors;
    if (fault !== undefined) refuse(fault.pos[0], fault.message);
    found = document;
  }
  // The composer always ends with one.
  return found!;
}

function* tokensOf(text: string, lines: LineCounter) {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  let count = 0;
  for (const lexeme of new Lexer().lex(text)) {
    if (++count > MAX_LEXEMES) throw new Error(`more than ${MAX_LEXEMES} words and signs; send JSON instead`);
    yield* parser.next(lexeme);
    if (parser.stack.length > MAX_OPEN) throw tooDeep();
  }
  yield* parser.end();
}

/** A value, and how many there are in it with everything that aliases bring. */
interface Sized {
  readonly value: unknown;
  readonly size: number;
}

/**
 * What a document says. What an alias stands for is shared, not copied: whoever changes the result makes a copy first.
 * Throws in the words of Go's decoder.
 */
export function yamlValue(document: Document): unknown {
  const anchored = new Map<string, Sized | 'open'>();
  let aliased = 0;
  return read(document.contents, 0).value;

  function read(node: unknown, depth: number): Sized {
    if (depth > MAX_LEVELS) throw tooDeep();
    if (isAlias(node)) return known(node.source);
    const anchor = isMap(node) || isSeq(node) || isScalar(node) ? node.anchor : undefined;
    if (anchor !== undefined) anchored.set(anchor, 'open');
    const made = readPlain(node, depth);
    if (anchor !== undefined) anchored.set(anchor, made);
    return made;
  }

  function readPlain(node: unknown, depth: number): Sized {
    if (isMap(node)) return readFields(node.items, depth);
    if (isPair(node)) return readFields([node], depth);
    if (!isSeq(node)) return { value: isScalar(node) ? node.value : null, size: 1 };
    let size = 1;
    const value = node.items.map((item) => {
      const made = read(item, depth + 1);
      size += made.size;
      return made.value;
    });
    return { value, size };
  }

  function readFields(pairs: readonly { key: unknown; value: unknown }[], depth: number): Sized {
    let size = 1;
    const value: Record<string, unknown> = {};
    for (const pair of pairs) {
      const key = keyText(read(pair.key, depth + 1).value);
      const made = read(pair.value, depth + 1);
      size += made.size;
      // Inert: dropped, as from JSON.
      if (key !== '__proto__') value[key] = made.value;
    }
    return { value, size };
  }

  function known(anchor: string): Sized {
    const made = anchored.get(anchor);
    if (made === undefined) throw new Error(`unknown anchor '${anchor}' referenced`);
    if (made === 'open') throw new Error(`anchor '${anchor}' value contains itself`);
    aliased += made.size;
    if (aliased > MAX_ALIASED) throw new Error('document contains excessive aliasing');
    return made;
  }
}

function keyText(key: unknown): string {
  if (typeof key === 'object' && key !== null) throw new Error('invalid map key: a map or a list');
  // `<<` of a text that says that it is YAML 1.1.
  if (typeof key === 'symbol') return key.description ?? '';
  return key === null ? '' : `${key as string | number | boolean}`;
}

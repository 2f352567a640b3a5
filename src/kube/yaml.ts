/**
 * Parses untrusted YAML in time that grows linearly with its length. The library's own `parse` searches the whole
 * document for every alias, formats every error with its line, and prints keys that are collections at each level: one
 * kilobyte can take seconds, 256 kilobytes a minute. Here each token takes some microseconds, and their number is
 * bounded.
 */
import { Composer, isAlias, isMap, isPair, isScalar, isSeq, Lexer, LineCounter, Parser, type Document } from 'yaml';

/** More than any object may have, and few enough for recursion. */
const MAX_LEVELS = 300;
/** The parser has up to three open collections per level. */
const MAX_OPEN = 3 * MAX_LEVELS;
/** Limit of tokens, spaces included. A typical text of 128 KiB has as many and takes 50 to 100 ms. */
const MAX_LEXEMES = 30_000;
/** Limit of values that all aliases of a text expand to. */
const MAX_ALIASED = 10_000;

const tooDeepError = () => new Error(`exceeded max depth of ${MAX_LEVELS}`);

export function parseYaml(text: string): unknown {
  return yamlValue(parseYamlDocument(text));
}

/** Parses a text. Throws its first error. The last of duplicate keys wins. */
export function parseYamlDocument(text: string, lines = new LineCounter()): Document {
  let first: Error | undefined;
  const refuse = (offset: number, message: string): never => {
    const { line, col } = lines.linePos(offset);
    // The composer catches the error and calls again, once for each enclosing collection.
    throw (first ??= new Error(`${message} at line ${line}, column ${col}`));
  };
  const composer = new Composer({ uniqueKeys: false });
  // By default it would continue and create an Error with a stack for each problem.
  Object.assign(composer, {
    onError(
      at: number | readonly [number, number] | { offset: number },
      _code: string,
      message: string,
      isWarning?: boolean,
    ) {
      if (isWarning !== true) refuse(typeof at === 'number' ? at : 'offset' in at ? at.offset : at[0], message);
    },
  });
  let found: Document | undefined;
  for (const document of composer.compose(readTokens(text, lines), true, text.length)) {
    if (found !== undefined) throw new Error('source contains multiple documents');
    const [error] = document.errors;
    if (error !== undefined) refuse(error.pos[0], error.message);
    found = document;
  }
  // The composer always returns at least one document.
  return found!;
}

function* readTokens(text: string, lines: LineCounter) {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  let count = 0;
  for (const lexeme of new Lexer().lex(text)) {
    if (++count > MAX_LEXEMES) throw new Error(`more than ${MAX_LEXEMES} tokens; send JSON instead`);
    yield* parser.next(lexeme);
    if (parser.stack.length > MAX_OPEN) throw tooDeepError();
  }
  yield* parser.end();
}

/** A value and the number of values in it, including those that aliases expand to. */
interface Sized {
  readonly value: unknown;
  readonly size: number;
}

/**
 * Returns the value of a document. Values of aliases are shared, not copied, so copy the result before changing it.
 * Throws errors with the messages of Go's decoder.
 */
export function yamlValue(document: Document): unknown {
  const anchored = new Map<string, Sized | 'open'>();
  let aliased = 0;
  return read(document.contents, 0).value;

  function read(node: unknown, depth: number): Sized {
    if (depth > MAX_LEVELS) throw tooDeepError();
    if (isAlias(node)) return readAlias(node.source);
    const anchor = isMap(node) || isSeq(node) || isScalar(node) ? node.anchor : undefined;
    if (anchor !== undefined) anchored.set(anchor, 'open');
    const sized = readNode(node, depth);
    if (anchor !== undefined) anchored.set(anchor, sized);
    return sized;
  }

  function readNode(node: unknown, depth: number): Sized {
    if (isMap(node)) return readFields(node.items, depth);
    if (isPair(node)) return readFields([node], depth);
    if (!isSeq(node)) return { value: isScalar(node) ? node.value : null, size: 1 };
    let size = 1;
    const value = node.items.map((item) => {
      const sized = read(item, depth + 1);
      size += sized.size;
      return sized.value;
    });
    return { value, size };
  }

  function readFields(pairs: readonly { key: unknown; value: unknown }[], depth: number): Sized {
    let size = 1;
    const value: Record<string, unknown> = {};
    for (const pair of pairs) {
      const key = keyText(read(pair.key, depth + 1).value);
      const sized = read(pair.value, depth + 1);
      size += sized.size;
      // Removed, as from JSON.
      if (key !== '__proto__') value[key] = sized.value;
    }
    return { value, size };
  }

  function readAlias(anchor: string): Sized {
    const sized = anchored.get(anchor);
    if (sized === undefined) throw new Error(`unknown anchor '${anchor}' referenced`);
    if (sized === 'open') throw new Error(`anchor '${anchor}' value contains itself`);
    aliased += sized.size;
    if (aliased > MAX_ALIASED) throw new Error('document contains excessive aliasing');
    return sized;
  }
}

function keyText(key: unknown): string {
  if (typeof key === 'object' && key !== null) throw new Error('invalid map key: a map or a list');
  // `<<` in a text that declares YAML 1.1.
  if (typeof key === 'symbol') return key.description ?? '';
  return key === null ? '' : `${key as string | number | boolean}`;
}

/** Bounds a JSON text before it is parsed: recursive code cannot handle the values of a text of brackets. */

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN = 0x7b;
const CLOSE = 0x7d;

interface JsonLimits {
  readonly maxDepth: number;
  /** The number of fields and list items. */
  readonly maxValues: number;
}

/**
 * Returns the first excess, or undefined if the text is within the limits. One pass without allocations. The text need not
 * be valid JSON.
 */
export function findJsonExcess(text: string, { maxDepth, maxValues }: JsonLimits): 'depth' | 'values' | undefined {
  const { length } = text;
  let depth = 0;
  let values = 0;
  for (let at = 0; at < length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        for (at++; at < length; at++) {
          const code = text.charCodeAt(at);
          if (code === QUOTE) break;
          if (code === BACKSLASH) at++;
        }
        break;
      case OPEN_LIST:
      case OPEN:
        if (++depth > maxDepth) return 'depth';
        if (++values > maxValues) return 'values';
        break;
      case COMMA:
        if (++values > maxValues) return 'values';
        break;
      case CLOSE_LIST:
      case CLOSE:
        depth--;
        break;
      default:
    }
  }
  return undefined;
}

/** Reports whether lists and objects are nested deeper than the limit. The text need not be valid JSON. */
export function isNestedDeeper(text: string, limit: number): boolean {
  return findJsonExcess(text, { maxDepth: limit, maxValues: Infinity }) !== undefined;
}

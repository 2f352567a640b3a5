/**
 * Names of JSON fields as CEL identifiers, as Kubernetes escapes them: `x-y` is `x__dash__y`, and a field that is
 * named like a word of the language (`namespace`) has underscores around it (`__namespace__`).
 */
const RESERVED: ReadonlySet<string> = new Set([
  ...['true', 'false', 'null', 'in', 'as', 'break', 'const', 'continue', 'else', 'for', 'function', 'if', 'import'],
  ...['let', 'loop', 'package', 'namespace', 'return', 'var', 'void', 'while'],
]);

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['__', '__underscores__'],
  ['.', '__dot__'],
  ['-', '__dash__'],
  ['/', '__slash__'],
]);

const UNESCAPES: ReadonlyMap<string, string> = new Map(
  [...ESCAPES].map(([plain, escaped]) => [escaped, plain] as const),
);

export function isReservedWord(name: string): boolean {
  return RESERVED.has(name);
}

/** undefined = no identifier can stand for it, so that expressions cannot reach it as a field. */
export function escapeFieldName(name: string): string | undefined {
  if (RESERVED.has(name)) return `__${name}__`;
  if (!/^[a-zA-Z_./-][a-zA-Z0-9_./-]*$/.test(name)) return undefined;
  return name.replaceAll(/__|[-./]/g, (part) => ESCAPES.get(part)!);
}

/** The JSON field that an identifier stands for. undefined = it has an escape that does not exist. */
export function unescapeFieldName(escaped: string): string | undefined {
  if (!escaped.includes('__')) return escaped;
  let valid = true;
  const name = escaped.replaceAll(/__[^_]+__/g, (part) => {
    const plain = UNESCAPES.get(part);
    if (plain !== undefined) return plain;
    const word = part.slice(2, -2);
    valid &&= part === escaped && RESERVED.has(word);
    return word;
  });
  return valid ? name : undefined;
}

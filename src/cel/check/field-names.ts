/**
 * Escapes names of JSON fields into CEL identifiers as Kubernetes does: `x-y` becomes `x__dash__y`, and a field with
 * the name of a reserved word (`namespace`) is surrounded by underscores (`__namespace__`).
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

/** Returns undefined if no identifier can represent the name. Expressions cannot select such a field. */
export function escapeFieldName(name: string): string | undefined {
  if (RESERVED.has(name)) return `__${name}__`;
  if (!/^[a-zA-Z_./-][a-zA-Z0-9_./-]*$/.test(name)) return undefined;
  return name.replaceAll(/__|[-./]/g, (part) => ESCAPES.get(part)!);
}

/** Returns the name of the JSON field for an identifier, or undefined if the identifier has an unknown escape. */
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

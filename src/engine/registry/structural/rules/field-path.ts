/**
 * Resolves the `fieldPath` of a rule: `.spec.size`, `.labels['a.b']`. It refers to fields of a schema or keys of a map,
 * but not to list items. Returns the path for errors, relative to the rule.
 */
import { isMap } from '#engine/registry/structural/keywords.ts';
import type { Schema } from '#kube/schema.ts';

export class FieldPathError extends Error {
  override name = 'FieldPathError';
}

export interface FoundField {
  /** The path for errors: `spec.size`, `labels[a.b]`. */
  readonly path: string;
  readonly schema: Schema | undefined;
}

interface FieldPathOptions {
  /** True if `['x']` is allowed instead of `.x`. */
  readonly brackets?: boolean;
}

/** Throws FieldPathError with Kubernetes' messages. */
export function fieldAt(path: string, root: Schema, { brackets = true }: FieldPathOptions = {}): FoundField {
  let schema: Schema | undefined = root;
  let shown = '';
  const tokens = tokensOf(path);
  const next = () => {
    const token = tokens.shift();
    if (token === undefined) throw new FieldPathError('unexpected end of JSON path');
    return token;
  };
  const step = (name: string) => {
    if (schema?.properties !== undefined) {
      shown += shown === '' ? name : `.${name}`;
      if (!Object.hasOwn(schema.properties, name)) throw new FieldPathError('does not refer to a valid field');
      schema = schema.properties[name];
    } else if (schema !== undefined && isMap(schema)) {
      shown += `[${name}]`;
      schema = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
    } else throw new FieldPathError('does not refer to a valid field');
  };
  while (tokens.length > 0) {
    const token = next();
    if (token === '.') step(next());
    else if (token === '[') {
      if (!brackets) throw new FieldPathError('array notation is not allowed');
      step(unquote(next()));
      const end = next();
      if (end !== ']') throw new FieldPathError(`expected ] but got ${end}`);
    } else throw new FieldPathError(`expected [ or . but got: ${token}`);
  }
  return { path: shown, schema };
}

/** Splits a path into dots, brackets, quoted strings and the text between them. */
function tokensOf(path: string): string[] {
  return path.match(/'(?:[^'\\]|\\[^])*'?|[.[\]]|[^.[\]']+(?:'[^.[\]]*)?/g) ?? [];
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['a', '\u0007'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['v', '\v'],
  ["'", "'"],
  ['\\', '\\'],
]);

function unquote(token: string): string {
  if (token.length < 2 || !token.startsWith("'") || !token.endsWith("'")) {
    throw new FieldPathError(`expected single quoted string but got ${token}`);
  }
  return token.slice(1, -1).replaceAll(/\\./gs, (escape) => {
    const plain = ESCAPES.get(escape.slice(1));
    if (plain === undefined) throw new FieldPathError(`invalid string literal: invalid escape char ${escape}`);
    return plain;
  });
}

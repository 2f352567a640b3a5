/** JSON values as Go's fmt prints them, for the few API messages of Kubernetes that show a raw map. */
import { isRecord } from '#kube/meta.ts';

const MAX_TEXT = 2048;

/** `%v`: `map[a:1 b:[x y]]`, keys sorted. Long texts are cut. */
export function goText(value: unknown): string {
  const out = { text: '' };
  print(value, out);
  return out.text.length > MAX_TEXT ? `${out.text.slice(0, MAX_TEXT)}...` : out.text;
}

function print(value: unknown, out: { text: string }): void {
  if (out.text.length > MAX_TEXT) return;
  if (Array.isArray(value)) {
    out.text += '[';
    for (const [i, item] of value.entries()) {
      if (i > 0) out.text += ' ';
      print(item, out);
      if (out.text.length > MAX_TEXT) return;
    }
    out.text += ']';
  } else if (isRecord(value)) {
    out.text += 'map[';
    for (const [i, key] of Object.keys(value).sort().entries()) {
      out.text += i > 0 ? ` ${key}:` : `${key}:`;
      print(value[key], out);
      if (out.text.length > MAX_TEXT) return;
    }
    out.text += ']';
  } else if (value === null || value === undefined) {
    out.text += '<nil>';
  } else {
    out.text += typeof value === 'string' ? value : JSON.stringify(value);
  }
}

/** `%#v`: `map[string]interface {}{"a":1, "b":[]interface {}{"x"}}`, keys sorted. Long texts are cut. */
export function goSyntax(value: unknown): string {
  const text = syntax(value, MAX_TEXT);
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}...` : text;
}

/** Stops soon after `room` characters. */
function syntax(value: unknown, room: number): string {
  if (value === null || value === undefined) return 'interface {}(nil)';
  if (typeof value !== 'object') return JSON.stringify(value);
  const isList = Array.isArray(value);
  const keys = Object.keys(value);
  let text = `${goType(value)}{`;
  let separator = '';
  for (const key of isList ? keys : keys.sort()) {
    if (text.length > room) break;
    text += isList ? separator : `${separator}${JSON.stringify(key)}:`;
    text += syntax((value as Record<string, unknown>)[key], room - text.length);
    separator = ', ';
  }
  return `${text}}`;
}

/** `%q` of a list of strings: `["a" "b"]`. */
export function goQuoted(texts: readonly string[]): string {
  return `[${texts.map((text) => JSON.stringify(text)).join(' ')}]`;
}

/** `%T` of a value as encoding/json decodes it. */
export function goType(value: unknown): string {
  if (value === null || value === undefined) return '%!s(<nil>)';
  if (Array.isArray(value)) return '[]interface {}';
  switch (typeof value) {
    case 'object':
      return 'map[string]interface {}';
    case 'boolean':
      return 'bool';
    case 'number':
      return Number.isInteger(value) ? 'int64' : 'float64';
    default:
      return typeof value;
  }
}

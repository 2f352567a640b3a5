/** Formats JSON values like Go's fmt, for the few API messages of Kubernetes that contain a raw map. */
import { isRecord, parseApiVersion } from '#kube/meta.ts';

const MAX_TEXT = 2048;

/** Formats like `%v`: `map[a:1 b:[x y]]`, keys sorted. Truncates long texts. */
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

/** Formats like `%#v`: `map[string]interface {}{"a":1, "b":[]interface {}{"x"}}`, keys sorted. Truncates long texts. */
export function goSyntax(value: unknown): string {
  const text = formatSyntax(value, MAX_TEXT);
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}...` : text;
}

/** Stops soon after `maxLength` characters. */
function formatSyntax(value: unknown, maxLength: number): string {
  if (value === null || value === undefined) return 'interface {}(nil)';
  if (typeof value !== 'object') return JSON.stringify(value);
  const isList = Array.isArray(value);
  const keys = Object.keys(value);
  let text = `${goType(value)}{`;
  let separator = '';
  for (const key of isList ? keys : keys.sort()) {
    if (text.length > maxLength) break;
    text += isList ? separator : `${separator}${JSON.stringify(key)}:`;
    text += formatSyntax((value as Record<string, unknown>)[key], maxLength - text.length);
    separator = ', ';
  }
  return `${text}}`;
}

/** Formats a list of strings like `%q`: `["a" "b"]`. */
export function goQuotedList(texts: readonly string[]): string {
  return `[${texts.map((text) => JSON.stringify(text)).join(' ')}]`;
}

/** Formats the type like `%T` of a value decoded by encoding/json. */
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

/** Renders the group, version and kind of an object: `apps/v1, Kind=Deployment`. */
export function kindText({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): string {
  const { group, version } = parseApiVersion(apiVersion);
  return `${group}/${version}, Kind=${kind}`;
}

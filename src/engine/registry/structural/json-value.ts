/** JSON values: their type names, and a canonical form. */

type JsonType = 'null' | 'boolean' | 'integer' | 'number' | 'string' | 'array' | 'object';

const INT64_END = 2 ** 63;

/** Any whole number in the int64 range. JavaScript cannot distinguish 3 from 3.0; Kubernetes accepts both. */
export function isInteger(value: number): boolean {
  return Number.isInteger(value) && value >= -INT64_END && value < INT64_END;
}

export function jsonTypeOf(value: unknown): JsonType {
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'boolean':
      return 'boolean';
    case 'number':
      return isInteger(value) ? 'integer' : 'number';
    default:
      if (value === null || value === undefined) return 'null';
      return Array.isArray(value) ? 'array' : 'object';
  }
}

/** Returns compact JSON with sorted keys. */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const fields = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(',')}}`;
}

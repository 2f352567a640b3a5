/** Reads objects whose shape is not validated yet, and compares values. */
import { isRecord } from '#kube/meta.ts';

/** Returns the objects of a list, or nothing if the value is not a list. */
export function records<T extends object>(list: readonly T[] | undefined): T[] {
  return Array.isArray(list) ? (list as readonly T[]).filter((item) => isRecord(item)) : [];
}

/** Compares like Kubernetes: absent, null, `{}` and `[]` are equal. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (isEmpty(a) || isEmpty(b)) return isEmpty(a) && isEmpty(b);
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, i) => sameValue(item, b[i]));
  }
  if (!isRecord(a) || !isRecord(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  for (const key of keys) if (!sameValue(own(a, key), own(b, key))) return false;
  return true;
}

function own(object: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isRecord(value) && Object.keys(value).length === 0;
}

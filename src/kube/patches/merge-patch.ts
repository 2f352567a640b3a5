/** JSON Merge Patch (RFC 7386): objects merge, null deletes, everything else replaces. */
import { isRecord } from '#kube/meta.ts';

/** Returns the merged document. Neither input changes; the result shares unchanged parts with them. */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const merged: Record<string, unknown> = isRecord(document) ? { ...document } : {};
  for (const key of Object.keys(patch)) {
    // Assigning this key would set the prototype.
    if (key === '__proto__') continue;
    const value = patch[key];
    if (value === null) {
      delete merged[key];
      continue;
    }
    const old = Object.hasOwn(merged, key) ? merged[key] : undefined;
    merged[key] = applyMergePatch(old, value);
  }
  return merged;
}

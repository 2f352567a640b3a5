/** Compares resourceVersions: decimal numbers of up to 64 bits, which a double cannot represent. */

/** Returns a negative number if `a` is older than `b`, 0 if they are equal, otherwise a positive number. */
export function compareRevisions(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

export function isRevision(value: unknown): value is string {
  return typeof value === 'string' && /^(0|[1-9][0-9]{0,19})$/.test(value);
}

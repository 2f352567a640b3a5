/** Reads the fields of a kubeconfig. Errors name the field and its place, never its value. */

export class KubeconfigError extends Error {
  override name = 'KubeconfigError';
}

export type KubeconfigFields = Record<string, unknown>;

export function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Returns the string, or undefined if the field is absent. `where` names the object that has the field. */
export function readString(fields: KubeconfigFields, field: string, where: string): string | undefined {
  const value = fields[field];
  if (!isPresent(value)) return undefined;
  if (typeof value === 'string') return value;
  throw new KubeconfigError(`Cannot use the kubeconfig: ${field} of ${where} is not a string`);
}

/** Returns the boolean, or false if the field is absent. */
export function readBoolean(fields: KubeconfigFields, field: string, where: string): boolean {
  const value = fields[field];
  if (!isPresent(value)) return false;
  if (typeof value === 'boolean') return value;
  throw new KubeconfigError(`Cannot use the kubeconfig: ${field} of ${where} is not true or false`);
}

/** Returns the list, which is empty if the field is absent. */
export function readList(fields: KubeconfigFields, field: string, where: string): readonly unknown[] {
  const value = fields[field];
  if (!isPresent(value)) return [];
  if (Array.isArray(value)) return value as unknown[];
  throw new KubeconfigError(`Cannot use the kubeconfig: ${field} of ${where} is not a list`);
}

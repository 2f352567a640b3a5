/**
 * A violation found by validation, for one field, in Kubernetes' words. Validation returns all violations and never
 * throws; `invalid()` in api-error.ts combines them into one 422.
 */

export type FieldErrorReason =
  | 'FieldValueInvalid'
  | 'FieldValueRequired'
  | 'FieldValueDuplicate'
  | 'FieldValueForbidden'
  | 'FieldValueNotFound'
  | 'FieldValueNotSupported'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueTypeInvalid';

export interface FieldError {
  readonly reason: FieldErrorReason;
  readonly field: string;
  /** The message without the field: `Invalid value: 3: must be ...`. */
  readonly message: string;
}

/** Formats an invalid value as Kubernetes does (Go's %#v and %q): strings quoted, objects as compact JSON. */
export function quoteValue(value: unknown): string {
  if (value === undefined || value === null) return 'null';
  return JSON.stringify(value);
}

const withDetail = (head: string, detail: string) => (detail === '' ? head : `${head}: ${detail}`);

export function invalidValue(field: string, value: unknown, detail: string): FieldError {
  return { reason: 'FieldValueInvalid', field, message: withDetail(`Invalid value: ${quoteValue(value)}`, detail) };
}

export function requiredValue(field: string, detail = ''): FieldError {
  return { reason: 'FieldValueRequired', field, message: withDetail('Required value', detail) };
}

export function duplicateValue(field: string, value: unknown): FieldError {
  return { reason: 'FieldValueDuplicate', field, message: `Duplicate value: ${quoteValue(value)}` };
}

export function forbiddenField(field: string, detail: string): FieldError {
  return { reason: 'FieldValueForbidden', field, message: withDetail('Forbidden', detail) };
}

export function unsupportedValue(field: string, value: unknown, supported: readonly string[]): FieldError {
  const list = supported.map((item) => JSON.stringify(item)).join(', ');
  const message = `Unsupported value: ${quoteValue(value)}: supported values: ${list}`;
  return { reason: 'FieldValueNotSupported', field, message };
}

export function tooLong(field: string, maxBytes: number): FieldError {
  return { reason: 'FieldValueTooLong', field, message: `Too long: may not be more than ${maxBytes} bytes` };
}

export function tooMany(field: string, actual: number, max: number): FieldError {
  return { reason: 'FieldValueTooMany', field, message: `Too many: ${actual}: must have at most ${max} items` };
}

/** The fields of a body, and what is said of one that has the wrong type: in the words of Go, which clients know. */
import { badRequest, type ApiError } from '#kube/api-error.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** `where` is the field with its struct: `StartOptions.paused`. */
export function wrongType(value: unknown, where: string, type: string): ApiError {
  const kind = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
  return unreadable(`json: cannot unmarshal ${kind} into Go struct field ${where} of type ${type}`);
}

export function unreadable(why: string): ApiError {
  return badRequest(`Can not unmarshal Request body to struct, error: ${why}`);
}

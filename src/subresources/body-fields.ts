/** Errors for the fields of a request body, with the wording of Go's JSON decoder, as in KubeVirt. */
import { badRequest, type ApiError } from '#kube/api-error.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** Returns the error for a field of the wrong type. `where` is the field with its struct: `StartOptions.paused`. */
export function wrongTypeError(value: unknown, where: string, type: string): ApiError {
  const kind = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
  return bodyError(`json: cannot unmarshal ${kind} into Go struct field ${where} of type ${type}`);
}

export function bodyError(why: string): ApiError {
  return badRequest(`Can not unmarshal Request body to struct, error: ${why}`);
}

/** Distinguishes errors that end the work on a VM from errors that are worth a retry. Pure. */
import { ApiError, isInapplicablePatch } from '#kube/api-error.ts';

/** Status codes that a retry does not change. */
const PERMANENT_CODES: ReadonlySet<number> = new Set([400, 403, 422]);
/** A message of the authorizer, not of admission. A missing right is temporary: the operator restores its roles. */
const MISSING_RIGHT = / is forbidden: User ".*" cannot /s;

export function isPermanentRefusal(error: unknown): error is ApiError {
  if (!(error instanceof ApiError) || !PERMANENT_CODES.has(error.code) || isInapplicablePatch(error)) return false;
  return error.code !== 403 || !MISSING_RIGHT.test(error.message);
}

/** Which answers of the server end the work on a VM, and which only this try. Pure. */
import { ApiError, isUnfitPatch } from '#kube/api-error.ts';

/** What does not get better by being asked again. */
const REFUSED: ReadonlySet<number> = new Set([400, 403, 422]);
/** Said to who lacks a right, unlike by an admission that refuses: the operator brings its roles back. */
const LACKS_RIGHT = / is forbidden: User ".*" cannot /s;

export function isRefusal(error: unknown): error is ApiError {
  if (!(error instanceof ApiError) || !REFUSED.has(error.code) || isUnfitPatch(error)) return false;
  return error.code !== 403 || !LACKS_RIGHT.test(error.message);
}

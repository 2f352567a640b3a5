/** How it is told that an object could not be collected. It is tried again in any case, later each time. */
import { ApiError } from '#kube/api-error.ts';
import type { Log } from '#lib/log.ts';

/** `about` names the object and says when its turn comes again. */
export function reportFailure(log: Log, error: unknown, about: object): void {
  if (isRefusedByAdmission(error)) {
    // As somebody wants it: a protected VM outlives its owner. Where in our code that was found out helps nobody.
    log.warn({ ...about, refusal: error.message }, 'Cannot collect: admission refuses it; trying again later');
  } else {
    log.error({ ...about, err: error }, 'Cannot collect; trying again later');
  }
}

/**
 * Policies and built-in checks say that it is forbidden, whatever their reason and code are; webhooks name themselves.
 * What RBAC forbids is no wish of anybody: the collector's own rights are not what they should be.
 */
function isRefusedByAdmission(error: unknown): error is ApiError {
  if (!(error instanceof ApiError)) return false;
  return (
    / is forbidden: (?!User ")/.test(error.message) ||
    /^admission webhook "[^"]*" denied the request/.test(error.message)
  );
}

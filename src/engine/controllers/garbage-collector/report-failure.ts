/** Logs that an object could not be collected. It is retried with increasing delay in any case. */
import { ApiError } from '#kube/api-error.ts';
import type { Log } from '#lib/log.ts';

/** `about` contains the object and the delay before the next attempt. */
export function reportFailure(log: Log, error: unknown, about: object): void {
  if (isRefusedByAdmission(error)) {
    // Expected, for example for a protected VM that outlives its owner. A stack trace would not help.
    log.warn(
      { ...about, refusal: error.message },
      'Cannot collect the object: admission refuses the change; retrying later',
    );
  } else {
    log.error({ ...about, err: error }, 'Cannot collect the object; retrying later');
  }
}

/**
 * Reports whether admission refused the request. Messages of policies and built-in checks contain "is forbidden",
 * regardless of reason and code; those of webhooks contain the webhook's name. A refusal by RBAC (`User "..."`) is an
 * error instead: the collector lacks permissions.
 */
function isRefusedByAdmission(error: unknown): error is ApiError {
  if (!(error instanceof ApiError)) return false;
  return (
    / is forbidden: (?!User ")/.test(error.message) ||
    /^admission webhook "[^"]*" denied the request/.test(error.message)
  );
}

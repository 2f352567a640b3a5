/** Maps errors of the store to API errors. */
import { StoreOverloadedError, StoreUnavailableError } from '#engine/store/store.ts';
import { internalError, tooManyRequests, type ApiError } from '#kube/api-error.ts';

export function toApiError(error: unknown): unknown {
  if (error instanceof StoreOverloadedError) return overloadedError(error);
  if (error instanceof StoreUnavailableError) return internalError(error.message, error);
  return error;
}

function overloadedError(error: StoreOverloadedError): ApiError {
  return tooManyRequests(
    `the server has received too many requests and has asked us to try again later: ${error.message}`,
    1,
  );
}

/** Converts a plain-text error of another server to the Status that kube-apiserver returns. Pure. */
import { ApiError, badRequest, internalError, type ResourceName } from '#kube/api-error.ts';

interface StatusText {
  readonly reason: string;
  readonly message: string;
}

/** An undefined message means the server's own text. */
const STATUS_TEXTS: Readonly<Record<number, { readonly reason: string; readonly message: string | undefined }>> = {
  401: { reason: 'Unauthorized', message: 'the server has asked for the client to provide credentials' },
  403: { reason: 'Forbidden', message: undefined },
  404: { reason: 'NotFound', message: 'the server could not find the requested resource' },
  405: { reason: 'MethodNotAllowed', message: 'the server does not allow this method on the requested resource' },
  409: { reason: 'Conflict', message: 'the server reported a conflict' },
  415: { reason: 'UnsupportedMediaType', message: undefined },
  422: { reason: 'Invalid', message: 'the server rejected our request due to an error in our request' },
  429: {
    reason: 'TooManyRequests',
    message: 'the server has received too many requests and has asked us to try again later',
  },
  503: { reason: 'ServiceUnavailable', message: 'the server is currently unable to handle the request' },
  504: {
    reason: 'Timeout',
    message: 'the server was unable to return a response in the time allotted, but may still be processing the request',
  },
};

export function upstreamStatusError(status: number, text: string, resource: ResourceName, name: string): ApiError {
  if (status === 500) return internalError(text);
  if (status === 400) return badRequest(text);
  const { reason, message } = statusTextOf(status, text);
  const { group, plural } = resource;
  // Kubernetes leaves the verb empty here, including the blank.
  return new ApiError(status, reason, `${message} ( ${plural} ${name})`, {
    details: { name, ...(group === '' ? {} : { group }), kind: plural },
  });
}

function statusTextOf(status: number, text: string): StatusText {
  const known = STATUS_TEXTS[status];
  if (known !== undefined) return { reason: known.reason, message: known.message ?? text };
  if (status > 500) {
    const message = `an error on the server (${JSON.stringify(text)}) has prevented the request from succeeding`;
    return { reason: 'InternalError', message };
  }
  const message = `the server responded with the status code ${status} but did not return more information`;
  return { reason: '', message };
}

/**
 * ApiError: a Kubernetes Status as an error, the same on server and client. Codes, reasons and messages are those of
 * kube-apiserver, because clients and users know them.
 */
import { type FieldError, invalidValue } from '#kube/field-error.ts';

export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: StatusCause[];
  retryAfterSeconds?: number;
}

export interface Status {
  kind: 'Status';
  apiVersion: 'v1';
  metadata: { continue?: string };
  status: 'Failure' | 'Success';
  message?: string;
  reason?: string;
  details?: StatusDetails;
  code?: number;
}

export interface ResourceName {
  readonly group: string;
  readonly plural: string;
}

interface KindName {
  readonly group: string;
  readonly kind: string;
}

export class ApiError extends Error {
  override name = 'ApiError';
  readonly code: number;
  readonly reason: string;
  readonly details: StatusDetails | undefined;
  /** A new continue token, which the server sends with the error about an expired one. */
  readonly continue: string | undefined;

  constructor(
    code: number,
    reason: string,
    message: string,
    { details, continueToken, cause }: { details?: StatusDetails; continueToken?: string; cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.code = code;
    this.reason = reason;
    this.details = details;
    this.continue = continueToken;
  }

  toStatus(): Status {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: this.continue === undefined ? {} : { continue: this.continue },
      status: 'Failure',
      message: this.message,
      ...(this.reason === '' ? {} : { reason: this.reason }),
      ...(this.details === undefined ? {} : { details: this.details }),
      code: this.code,
    };
  }

  static fromStatus(status: Partial<Status>, httpCode: number): ApiError {
    const message = status.message ?? `the server responded with HTTP ${httpCode}`;
    return new ApiError(status.code ?? httpCode, status.reason ?? '', message, {
      details: status.details,
      continueToken: status.metadata?.continue,
    });
  }
}

const detailsOf = ({ group, plural }: ResourceName, name: string): StatusDetails => ({
  ...(name === '' ? {} : { name }),
  ...(group === '' ? {} : { group }),
  kind: plural,
});

const resourceText = ({ group, plural }: ResourceName) => (group === '' ? plural : `${plural}.${group}`);

export function notFound(resource: ResourceName, name: string): ApiError {
  return new ApiError(404, 'NotFound', `${resourceText(resource)} "${name}" not found`, {
    details: detailsOf(resource, name),
  });
}

export function alreadyExists(resource: ResourceName, name: string): ApiError {
  return new ApiError(409, 'AlreadyExists', `${resourceText(resource)} "${name}" already exists`, {
    details: detailsOf(resource, name),
  });
}

/** Every generated name was already in use; the client may retry at once. */
export function generateNameConflict(resource: ResourceName, name: string): ApiError {
  const text = `${resourceText(resource)} "${name}" already exists, the server was not able to generate a unique name for the object`;
  return new ApiError(409, 'AlreadyExists', text, { details: { ...detailsOf(resource, name), retryAfterSeconds: 1 } });
}

export function conflict(resource: ResourceName, name: string, reason: string): ApiError {
  const text = `Operation cannot be fulfilled on ${resourceText(resource)} "${name}": ${reason}`;
  return new ApiError(409, 'Conflict', text, { details: detailsOf(resource, name) });
}

/** kube-apiserver's message for a JSON patch that cannot be applied, usually because a `test` failed. */
export const INAPPLICABLE_PATCH = 'the server rejected our request due to an error in our request';

export function isInapplicablePatch(error: unknown): boolean {
  return error instanceof ApiError && error.code === 422 && error.message === INAPPLICABLE_PATCH;
}

export const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';

export function invalid(kind: KindName, name: string, errors: readonly FieldError[]): ApiError {
  const texts = errors.map((error) => `${error.field}: ${error.message}`);
  const list = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`;
  const kindText = kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`;
  return new ApiError(422, 'Invalid', `${kindText} "${name}" is invalid: ${list}`, {
    details: {
      ...(name === '' ? {} : { name }),
      ...(kind.group === '' ? {} : { group: kind.group }),
      ...(kind.kind === '' ? {} : { kind: kind.kind }),
      causes: errors.map(({ reason, message, field }) => ({ reason, message, field })),
    },
  });
}

/**
 * The result of a patch is not a valid object of the kind. kube-apiserver names neither kind nor object in this error.
 */
export function invalidPatch(value: string, reason: string): ApiError {
  return invalid({ group: '', kind: '' }, '', [invalidValue('patch', value, reason)]);
}

export function forbidden(resource: ResourceName, name: string, reason: string): ApiError {
  const subject = name === '' ? resourceText(resource) : `${resourceText(resource)} "${name}"`;
  return new ApiError(403, 'Forbidden', `${subject} is forbidden: ${reason}`, { details: detailsOf(resource, name) });
}

export function forbiddenPath(user: string, verb: string, path: string): ApiError {
  return new ApiError(403, 'Forbidden', `forbidden: User "${user}" cannot ${verb} path "${path}"`, { details: {} });
}

export function unauthorized(): ApiError {
  return new ApiError(401, 'Unauthorized', 'Unauthorized');
}

export function badRequest(message: string): ApiError {
  return new ApiError(400, 'BadRequest', message);
}

export function methodNotAllowed(): ApiError {
  const message = 'the server does not allow this method on the requested resource';
  return new ApiError(405, 'MethodNotAllowed', message, { details: {} });
}

export function gone(message: string, continueToken?: string): ApiError {
  return new ApiError(410, 'Expired', message, { continueToken });
}

export function unsupportedMediaType(accepted: readonly string[]): ApiError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`;
  return new ApiError(415, 'UnsupportedMediaType', message);
}

export function notAcceptable(accepted: readonly string[]): ApiError {
  return new ApiError(406, 'NotAcceptable', `only the following media types are accepted: ${accepted.join(', ')}`);
}

export function tooLarge(message: string): ApiError {
  return new ApiError(413, 'RequestEntityTooLarge', message);
}

export function tooManyRequests(message: string, retryAfterSeconds: number): ApiError {
  return new ApiError(429, 'TooManyRequests', message, { details: { retryAfterSeconds } });
}

/** The disk is full. Kubernetes has no reason for this; the code is that of RFC 4918. */
export function insufficientStorage(message: string): ApiError {
  return new ApiError(507, 'InsufficientStorage', message, { details: { retryAfterSeconds: 1 } });
}

export function timeout(message: string, retryAfterSeconds?: number): ApiError {
  return new ApiError(504, 'Timeout', `Timeout: ${message}`, {
    details: retryAfterSeconds === undefined ? {} : { retryAfterSeconds },
  });
}

export function internalError(message: string, cause?: unknown): ApiError {
  return new ApiError(500, 'InternalError', `Internal error occurred: ${message}`, {
    details: { causes: [{ message }] },
    cause,
  });
}

export function isApiError(error: unknown, reason: string): error is ApiError {
  return error instanceof ApiError && error.reason === reason;
}

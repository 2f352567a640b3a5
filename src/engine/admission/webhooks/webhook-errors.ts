/** Builds the errors of webhooks that deny a request or fail. */
import type { WebhookVerdict } from '#engine/admission/webhooks/verdict.ts';
import { ApiError, badRequest, internalError, type StatusCause, type StatusDetails } from '#kube/api-error.ts';
import { isRecord } from '#kube/meta.ts';

/** The webhook chooses code, reason and details; an invalid error code becomes 400. */
export function deniedError(webhook: string, { status }: WebhookVerdict): ApiError {
  const reason = text(status['reason']);
  const explanation = text(status['message']) || reason;
  const head = `admission webhook "${webhook}" denied the request`;
  const message = explanation === '' ? `${head} without explanation` : `${head}: ${explanation}`;
  const details = isRecord(status['details']) ? detailsOf(status['details']) : undefined;
  return new ApiError(errorCode(status['code']), reason, message, details === undefined ? {} : { details });
}

function errorCode(value: unknown): number {
  const known = typeof value === 'number' && Number.isInteger(value) && value >= 400 && value <= 599;
  return known ? value : 400;
}

const text = (value: unknown) => (typeof value === 'string' ? value : '');

function detailsOf(value: Record<string, unknown>): StatusDetails {
  const details: StatusDetails = {};
  for (const name of ['name', 'group', 'kind', 'uid'] as const) {
    if (text(value[name]) !== '') details[name] = text(value[name]);
  }
  if (Array.isArray(value['causes'])) details.causes = value['causes'].filter(isRecord).map(causeOf);
  const seconds = value['retryAfterSeconds'];
  if (typeof seconds === 'number' && Number.isInteger(seconds) && seconds > 0) details.retryAfterSeconds = seconds;
  return details;
}

function causeOf(value: Record<string, unknown>): StatusCause {
  const cause: StatusCause = {};
  for (const name of ['reason', 'message', 'field'] as const) {
    if (text(value[name]) !== '') cause[name] = text(value[name]);
  }
  return cause;
}

export function failedCallError(webhook: string, why: string, cause: unknown): ApiError {
  return internalError(`failed calling webhook "${webhook}": ${why}`, cause);
}

export function dryRunUnsupportedError(webhook: string): ApiError {
  return badRequest(`admission webhook "${webhook}" does not support dry run`);
}

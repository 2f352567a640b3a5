/** Decodes the HTTP response of a webhook, with client-go's messages. Pure; throws CallFailure for invalid responses. */
import { NestingError } from '#engine/encoding/json-bounds.ts';
import { parseJson } from '#engine/encoding/json.ts';
import { CallFailure } from '#engine/remote/webhooks/call-failure.ts';
import type { HttpResponse } from '#engine/remote/webhooks/review-poster.ts';
import { findGoJsonError } from '#kube/go/go-json-error.ts';
import { isRecord } from '#kube/meta.ts';

/** Returns the review in the response. */
export function decodeResponse({ status, contentType, body }: HttpResponse): unknown {
  if (status < 200 || status > 206) throw new CallFailure(serverMessage(status, contentType, body));
  try {
    return parseJson(body.toString('utf8'));
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof NestingError)) throw error;
    const why = findGoJsonError(body) ?? error.message;
    throw new CallFailure(`couldn't get version/kind; json parse error: ${why}`);
  }
}

const SHOWN_BYTES = 2048;

/** Returns client-go's message for an error response. */
function serverMessage(status: number, contentType: string, body: Buffer): string {
  const text = contentType === '' || contentType.startsWith('text/') ? excerpt(body) : 'unknown';
  const statusText = statusMessage(body);
  if (statusText !== undefined) return statusText;
  switch (status) {
    case 400:
      return 'the server rejected our request for an unknown reason';
    case 401:
      return 'the server has asked for the client to provide credentials';
    case 403:
    case 415:
      return text;
    case 404:
      return 'the server could not find the requested resource';
    case 405:
      return 'the server does not allow this method on the requested resource';
    case 409:
      return 'the server reported a conflict';
    case 422:
      return 'the server rejected our request due to an error in our request';
    case 429:
      return 'the server has received too many requests and has asked us to try again later';
    case 503:
      return 'the server is currently unable to handle the request';
    case 504:
      return 'the server was unable to return a response in the time allotted, but may still be processing the request';
    default:
      return status >= 500
        ? `an error on the server (${JSON.stringify(text)}) has prevented the request from succeeding`
        : `the server responded with the status code ${status} but did not return more information`;
  }
}

const excerpt = (body: Buffer) => body.subarray(0, SHOWN_BYTES).toString('utf8').trim();

function statusMessage(body: Buffer): string | undefined {
  try {
    const value = parseJson(body.toString('utf8'));
    if (!isRecord(value) || value['kind'] !== 'Status' || typeof value['message'] !== 'string') return undefined;
    return value['message'].slice(0, SHOWN_BYTES);
  } catch {
    return undefined;
  }
}

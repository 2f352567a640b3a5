/** The position of a paged list: its revision and the last id that was sent. Opaque to clients. */
import { type ApiError, badRequest, gone } from '#kube/api-error.ts';

export interface ContinueToken {
  /** -1 = the page's revision was compacted; continue with the current state. */
  readonly revision: number;
  readonly after: string;
}

const VERSION = 'meta.k8s.io/v1';

export function encodeContinue({ revision, after }: ContinueToken): string {
  return Buffer.from(JSON.stringify({ v: VERSION, rv: revision, start: after })).toString('base64url');
}

export function decodeContinue(token: string): ContinueToken {
  let value: { v?: unknown; rv?: unknown; start?: unknown };
  try {
    value = JSON.parse(Buffer.from(token, 'base64url').toString('utf8')) as typeof value;
  } catch (error) {
    throw badRequest(`invalid continue token: continue key is not valid: ${(error as Error).message}`);
  }
  const { v, rv, start } = value ?? {};
  if (v !== VERSION)
    throw badRequest(
      'invalid continue token: continue key is not valid: server does not recognize this encoded version',
    );
  if (!Number.isSafeInteger(rv) || typeof start !== 'string' || start === '') {
    throw badRequest('invalid continue token: continue key is not valid: incorrect encoded start resourceVersion');
  }
  return { revision: rv as number, after: start };
}

export function expiredContinue(after: string): ApiError {
  return gone(
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without ' +
      'the continue parameter, or use the continue token in this response to retrieve the remainder of the results. ' +
      'Continuing with the provided token results in an inconsistent list - objects that were created, modified, or ' +
      'deleted between the time the first chunk was returned and now may show up in the list.',
    encodeContinue({ revision: -1, after }),
  );
}

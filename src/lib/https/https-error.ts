/** The errors that this folder adds to those of Node.js. Callers format them for their users. */

export class HttpsError extends Error {
  override name = 'HttpsError';
}

export type HttpsPhase = 'connect' | 'headers' | 'body';

const LATE: Readonly<Record<HttpsPhase, string>> = {
  connect: 'no connection within',
  headers: 'no response within',
  body: 'the response was not complete within',
};

export class HttpsTimeoutError extends HttpsError {
  override name = 'HttpsTimeoutError';
  readonly phase: HttpsPhase;

  constructor(phase: HttpsPhase, timeoutMs: number) {
    super(`${LATE[phase]} ${timeoutMs / 1000} seconds`);
    this.phase = phase;
  }
}

export class BodyTooLargeError extends HttpsError {
  override name = 'BodyTooLargeError';

  constructor(maxBytes: number) {
    super(`the response is larger than ${maxBytes} bytes`);
  }
}

/** A certificate, its key or the authority cannot be used. */
export class ClientIdentityError extends HttpsError {
  override name = 'ClientIdentityError';
}

/** The error of a request that the server did not process. Any such request may be sent again on another connection. */
export class NotProcessedError extends HttpsError {
  override name = 'NotProcessedError';
}

/** A webhook call that failed or returned an invalid response. The failurePolicy decides the consequence. */
export class CallFailure extends Error {
  override name = 'CallFailure';
}

/** The call exceeded timeoutSeconds; Go's message. */
export class DeadlineExceeded extends CallFailure {
  override name = 'DeadlineExceeded';
  constructor() {
    super('context deadline exceeded');
  }
}

export class CallCanceled extends CallFailure {
  override name = 'CallCanceled';
  constructor() {
    super('context canceled');
  }
}

export class TooManyCalls extends CallFailure {
  override name = 'TooManyCalls';
  constructor(limit: number) {
    super(`too many requests are waiting for this webhook; the limit is ${limit}`);
  }
}

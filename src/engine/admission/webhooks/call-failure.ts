/** A webhook that could not be asked or did not answer as it must: its failurePolicy decides what becomes of that. */
export class CallFailure extends Error {
  override name = 'CallFailure';
}

/** Past timeoutSeconds, in Go's words. */
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
    super(`too many requests wait for this webhook; the limit is ${limit}`);
  }
}

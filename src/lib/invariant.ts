/** Assertions about our own code. A failure is a bug; never use them to check input. */

class InvariantError extends Error {
  override name = 'InvariantError';
}

export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(`Invariant broken: ${message}`);
}

/** Makes a switch over a union exhaustive: a missing case fails at compile time, an unexpected value at run time. */
export function unreachable(value: never): never {
  throw new InvariantError(`Invariant broken: unexpected value ${JSON.stringify(value)}`);
}

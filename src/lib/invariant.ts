/** Our own mistakes fail loudly; never use it for input. */

export class InvariantError extends Error {
  override name = 'InvariantError';
}

export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(`Invariant broken: ${message}`);
}

/** Makes a switch over a union exhaustive at compile time and loud at run time. */
export function unreachable(value: never): never {
  throw new InvariantError(`Invariant broken: unexpected value ${JSON.stringify(value)}`);
}

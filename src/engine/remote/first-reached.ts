/** Of several servers that would all do, the first that is there. */
import { isUnreached, type Dialed } from '#engine/remote/go-network-error.ts';

/** Tries the next only where nobody took the connection: then nothing was sent. The error of `ask` has why as its cause. */
export async function firstReached<T>(dialed: readonly Dialed[], ask: (one: Dialed) => Promise<T>): Promise<T> {
  for (const one of dialed.slice(0, -1)) {
    try {
      return await ask(one);
    } catch (error) {
      if (!(error instanceof Error) || !isUnreached(error.cause)) throw error;
    }
  }
  return await ask(dialed.at(-1)!);
}

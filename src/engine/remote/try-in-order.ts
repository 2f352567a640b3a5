/** Tries several equivalent servers until one can be reached. */
import { isConnectFailure, type DialTarget } from '#engine/remote/go-network-error.ts';

/**
 * Tries the next server only if the connection failed, so that nothing was sent. The error of `send` must have the
 * network error as its cause.
 */
export async function tryInOrder<T>(dialed: readonly DialTarget[], send: (one: DialTarget) => Promise<T>): Promise<T> {
  for (const one of dialed.slice(0, -1)) {
    try {
      return await send(one);
    } catch (error) {
      if (!(error instanceof Error) || !isConnectFailure(error.cause)) throw error;
    }
  }
  return await send(dialed.at(-1)!);
}

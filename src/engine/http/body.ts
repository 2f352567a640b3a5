/** Reads a request body, with limits on size and time. */
import type { Readable } from 'node:stream';
import type { BodyBytes } from '#engine/http/body-memory.ts';
import { MAX_BODY_BYTES } from '#engine/request/limits.ts';
import { ApiError, badRequest, tooLarge, tooManyRequests } from '#kube/api-error.ts';

const BODY_TIMEOUT_MS = 60_000;
/** The time between two pieces of a body. */
const PIECE_TIMEOUT_MS = 10_000;
const MAX_DRAINED_BYTES = 8 * MAX_BODY_BYTES;

/** The bytes are added to the account, which the caller closes. */
export function readRequestBody(
  stream: Readable,
  contentLength: string | undefined,
  account: BodyBytes,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (contentLength !== undefined && Number(contentLength) > MAX_BODY_BYTES) {
      stream.resume();
      reject(overLimitError());
      return;
    }
    if (!account.announce(Number(contentLength ?? 0) || 0)) {
      stream.resume();
      reject(noRoomError());
      return;
    }
    const chunks: Buffer[] = [];
    let size = 0;
    let done = false;
    // Errors are created lazily: they are expensive, and 'close' follows each request.
    const settle = (outcome: Buffer | (() => ApiError)) => {
      if (done) return;
      done = true;
      clearTimeout(timer);
      clearTimeout(pieceTimer);
      if (typeof outcome === 'function') reject(outcome());
      else resolve(outcome);
    };
    const timer = setTimeout(() => settle(slowBodyError), BODY_TIMEOUT_MS);
    timer.unref();
    const pieceTimer = setTimeout(() => settle(slowBodyError), PIECE_TIMEOUT_MS);
    pieceTimer.unref();
    stream.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (!done && size <= MAX_BODY_BYTES) {
        pieceTimer.refresh();
        if (account.add(chunk.length)) chunks.push(chunk);
        else {
          chunks.length = 0;
          account.close();
          settle(noRoomError);
        }
        return;
      }
      settle(overLimitError);
      // The rest is read and dropped, up to a limit, so that the client sees the response.
      if (size > MAX_DRAINED_BYTES) stream.destroy();
    });
    stream.once('end', () => settle(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    stream.once('close', () => settle(cutOffError));
  });
}

function overLimitError(): ApiError {
  return tooLarge(`Request entity too large: limit is ${MAX_BODY_BYTES}`);
}

function noRoomError(): ApiError {
  return tooManyRequests('the server holds too many request bodies of this user or in all; try again later', 1);
}

export function cutOffError(): ApiError {
  return badRequest('the connection ended before the body was complete');
}

function slowBodyError(): ApiError {
  return new ApiError(
    408,
    'Timeout',
    `Timeout: the request body did not arrive within ${BODY_TIMEOUT_MS / 1000} seconds, or stopped for ${PIECE_TIMEOUT_MS / 1000}`,
  );
}

/** Joins a local connection with a stream of a guest until both have ended. */
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import type { WebSocketStream } from '#lib/websocket/websocket.ts';

/** The time to wait for data of the guest after the local input has ended. A WebSocket cannot transmit a half-close. */
const FINAL_RESPONSE_MS = 10_000;

interface LocalStreams {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
}

/** Rejects if the stream of the guest fails. A local side that disconnects is not an error. */
export async function joinStreams({ input, output }: LocalStreams, remote: WebSocketStream): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const restartTimer = () => {
    clearTimeout(timer);
    timer = setTimeout(() => remote.end(), FINAL_RESPONSE_MS);
  };
  const closeRemote = () => remote.destroy();
  const onInputEnd = () => {
    restartTimer();
    remote.on('data', restartTimer);
  };
  input.once('end', onInputEnd);
  output.once('close', closeRemote);
  output.on('error', closeRemote);
  const closed = once(remote, 'close');
  input.pipe(remote, { end: false });
  remote.pipe(output, { end: false });
  try {
    await closed;
  } finally {
    clearTimeout(timer);
    input.off('end', onInputEnd);
    output.off('close', closeRemote);
    output.off('error', closeRemote);
    input.unpipe(remote);
    input.pause();
  }
}

/** Returns one socket as both streams. */
export function socketStreams(socket: Readable & Writable): LocalStreams {
  return { input: socket, output: socket };
}

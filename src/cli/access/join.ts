/** A local connection and a stream of a guest, joined until both are over. */
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import type { WebSocketStream } from '#lib/websocket.ts';

/** How long an answer may take after the local side has said its last. A WebSocket cannot pass such an end on. */
const LAST_WORDS_MS = 10_000;

export interface Local {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
}

/** Rejects where the guest's side breaks; the local side just going away is no fault. */
export async function join({ input, output }: Local, remote: WebSocketStream): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const waitOn = () => {
    clearTimeout(timer);
    timer = setTimeout(() => remote.end(), LAST_WORDS_MS);
  };
  const leave = () => remote.destroy();
  const said = () => {
    waitOn();
    remote.on('data', waitOn);
  };
  input.once('end', said);
  output.once('close', leave);
  output.on('error', leave);
  const closed = once(remote, 'close');
  input.pipe(remote, { end: false });
  remote.pipe(output, { end: false });
  try {
    await closed;
  } finally {
    clearTimeout(timer);
    input.off('end', said);
    output.off('close', leave);
    output.off('error', leave);
    input.unpipe(remote);
    input.pause();
  }
}

/** Both ends of one socket. */
export function bothEnds(socket: Readable & Writable): Local {
  return { input: socket, output: socket };
}

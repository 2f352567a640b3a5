/** The open consoles or displays of guests. Each guest has one session; a new session replaces the previous one. */
import { CLOSE_CODES, type WebSocketStream } from '#lib/websocket/websocket.ts';

export class Sessions {
  readonly #open = new Map<string, WebSocketStream>();

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /** Starts a session. The previous one is closed with the reason `why`. */
  replace(id: string, stream: WebSocketStream, why: string): void {
    this.#open.get(id)?.close(CLOSE_CODES.replaced, why);
    this.#open.set(id, stream);
    stream.once('close', () => {
      if (this.#open.get(id) === stream) this.#open.delete(id);
    });
  }
}

/** The open consoles or displays of guests. */
import { CLOSE_CODES, type WebSocketStream } from '#lib/websocket/websocket.ts';

export class Sessions {
  readonly #open = new Map<string, Set<WebSocketStream>>();

  /** Returns the number of open sessions of a guest. */
  count(id: string): number {
    return this.#open.get(id)?.size ?? 0;
  }

  /** Starts a session beside those that are open. */
  add(id: string, stream: WebSocketStream): void {
    const open = this.#open.get(id) ?? new Set();
    this.#open.set(id, open.add(stream));
    stream.once('close', () => {
      open.delete(stream);
      if (open.size === 0 && this.#open.get(id) === open) this.#open.delete(id);
    });
  }

  /** Starts the only session of a guest. A previous one is closed with the reason `why`. */
  replace(id: string, stream: WebSocketStream, why: string): void {
    for (const previous of this.#open.get(id) ?? []) previous.close(CLOSE_CODES.replaced, why);
    this.#open.delete(id);
    this.add(id, stream);
  }
}

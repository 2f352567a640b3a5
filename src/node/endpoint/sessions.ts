/** Who looks at the console or the display of a guest: one at a time, and who comes later takes the place. */
import { CLOSE } from '#lib/websocket-frames.ts';
import type { WebSocketStream } from '#lib/websocket.ts';

export class Sessions {
  readonly #open = new Map<string, WebSocketStream>();

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /** Whoever was there is told why it ends. */
  take(id: string, stream: WebSocketStream, why: string): void {
    this.#open.get(id)?.close(CLOSE.replaced, why);
    this.#open.set(id, stream);
    stream.once('close', () => {
      if (this.#open.get(id) === stream) this.#open.delete(id);
    });
  }
}

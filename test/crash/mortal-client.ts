/** A controller whose process dies after so many writes, and that another one takes over from. */
import type { Client } from '#client/client.ts';
import type { PlaneController } from '#controllers/plane-controller.ts';
import { invariant } from '#lib/invariant.ts';
import type { RunningController } from '#runtime/controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';

export class Mortal implements PlaneController {
  readonly account: string;
  readonly eventSource: string;
  readonly #controller: PlaneController;
  #parts: ControllerParts | undefined;
  #running: readonly RunningController[] = [];
  #stopping = new AbortController();
  #writesLeft = Number.POSITIVE_INFINITY;
  #isDead = false;

  constructor(controller: PlaneController) {
    this.#controller = controller;
    this.account = controller.account;
    this.eventSource = controller.eventSource;
  }

  /** Whether it wanted to write more than it could. */
  get isDead(): boolean {
    return this.#isDead;
  }

  diesAfter(writes: number): void {
    this.#writesLeft = writes;
  }

  /** One that lives. It knows nothing but what is stored. */
  async restart(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#running.map(({ stopped }) => stopped));
    this.#writesLeft = Number.POSITIVE_INFINITY;
    this.#isDead = false;
    this.#spawn();
  }

  readonly start = (parts: ControllerParts): readonly RunningController[] => {
    this.#parts = parts;
    this.#spawn();
    const idle = async () => void (await Promise.all(this.#running.map((running) => running.idle())));
    const stopped = new Promise<void>((resolve) => {
      parts.signal.addEventListener('abort', () => {
        this.#stopping.abort();
        resolve();
      });
    }).then(async () => void (await Promise.all(this.#running.map((running) => running.stopped))));
    return [{ name: this.account, enqueue: () => undefined, idle, stopped }];
  };

  #spawn(): void {
    invariant(this.#parts !== undefined, 'it was started before');
    this.#stopping = new AbortController();
    const { signal } = this.#stopping;
    this.#running = this.#controller.start({ ...this.#parts, client: this.#mortalClient(this.#parts.client), signal });
  }

  #mortalClient(client: Client): Client {
    const patch: Client['patch'] = (...request) => {
      if (this.#writesLeft-- > 0) return client.patch(...request);
      this.#isDead = true;
      return Promise.reject(new Error('the process is gone'));
    };
    return { ...client, patch };
  }
}

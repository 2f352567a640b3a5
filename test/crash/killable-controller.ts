/** A controller that loses its API access after a number of writes, as if its process was killed, and can be restarted. */
import type { Client } from '#client/client.ts';
import type { PlaneController } from '#controllers/shared/plane-controller.ts';
import { invariant } from '#lib/invariant.ts';
import type { RunningController } from '#runtime/controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';

export class KillableController implements PlaneController {
  readonly account: string;
  readonly eventSource: string;
  readonly #controller: PlaneController;
  #parts: ControllerParts | undefined;
  #running: readonly RunningController[] = [];
  #stopping = new AbortController();
  #writesLeft = Number.POSITIVE_INFINITY;
  #isKilled = false;

  constructor(controller: PlaneController) {
    this.#controller = controller;
    this.account = controller.account;
    this.eventSource = controller.eventSource;
  }

  /** Reports whether the controller tried to write more than it could. */
  get isKilled(): boolean {
    return this.#isKilled;
  }

  killAfter(writes: number): void {
    this.#writesLeft = writes;
  }

  /** Starts the controller again. The new one knows only what is stored. */
  async restart(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#running.map(({ stopped }) => stopped));
    this.#writesLeft = Number.POSITIVE_INFINITY;
    this.#isKilled = false;
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
    this.#running = this.#controller.start({ ...this.#parts, client: this.#limitedClient(this.#parts.client), signal });
  }

  #limitedClient(client: Client): Client {
    const patch: Client['patch'] = (...request) => {
      if (this.#writesLeft-- > 0) return client.patch(...request);
      this.#isKilled = true;
      return Promise.reject(new Error('the process was killed'));
    };
    return { ...client, patch };
  }
}

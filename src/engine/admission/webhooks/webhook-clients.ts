/** The clients of all webhooks, one for each webhook, kept as long as its clientConfig does not change. */
import type { ReviewCallerParts } from '#engine/remote/webhooks/review-caller.ts';
import type { Hook } from '#engine/admission/webhooks/hook.ts';
import { WebhookClient } from '#engine/admission/webhooks/webhook-client.ts';

export class WebhookClients {
  readonly #parts: ReviewCallerParts;
  readonly #clients = new Map<string, WebhookClient>();
  #used: ReadonlySet<string> = new Set();

  constructor(parts: ReviewCallerParts) {
    this.#parts = parts;
  }

  /** Returns the client of a hook. A hook that was just removed gets a temporary client. */
  of({ key, clientConfig }: Hook): WebhookClient {
    const known = this.#clients.get(key);
    if (known !== undefined) return known;
    const client = new WebhookClient(clientConfig, this.#parts);
    if (this.#used.has(key)) this.#clients.set(key, client);
    else client.retire();
    return client;
  }

  /** Sets the hooks in use. Retires other clients; their pending calls continue. */
  keepOnly(hooks: readonly Hook[]): void {
    this.#used = new Set(hooks.map(({ key }) => key));
    for (const [key, client] of this.#clients) {
      if (this.#used.has(key)) continue;
      this.#clients.delete(key);
      client.retire();
    }
  }
}

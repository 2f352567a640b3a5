/** The clients of all webhooks: one for each webhook, kept as long as its configuration keeps its clientConfig. */
import type { Hook } from '#engine/admission/webhooks/hook.ts';
import { WebhookClient, type WebhookClientParts } from '#engine/admission/webhooks/webhook-client.ts';

export class WebhookClients {
  readonly #parts: WebhookClientParts;
  readonly #known = new Map<string, WebhookClient>();
  #used: ReadonlySet<string> = new Set();

  constructor(parts: WebhookClientParts) {
    this.#parts = parts;
  }

  /** For a hook that is in use, or was a moment ago: then the client is for this call alone, and nobody keeps it. */
  of({ key, clientConfig }: Hook): WebhookClient {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const client = new WebhookClient(clientConfig, this.#parts);
    if (this.#used.has(key)) this.#known.set(key, client);
    else client.retire();
    return client;
  }

  /** From now on these are in use. Lets go of clients that none of them needs; their calls under way go on. */
  keepOnly(hooks: readonly Hook[]): void {
    this.#used = new Set(hooks.map(({ key }) => key));
    for (const [key, client] of this.#known) {
      if (this.#used.has(key)) continue;
      this.#known.delete(key);
      client.retire();
    }
  }
}

/** The clients of all webhooks: one for each webhook, kept as long as its configuration keeps its clientConfig. */
import type { Hook } from '#engine/admission/webhooks/hook.ts';
import { WebhookClient, type WebhookClientParts } from '#engine/admission/webhooks/webhook-client.ts';

export class WebhookClients {
  readonly #parts: WebhookClientParts;
  readonly #known = new Map<string, WebhookClient>();

  constructor(parts: WebhookClientParts) {
    this.#parts = parts;
  }

  /** For a hook that is in use, or was a moment ago: then the client lives for this call. */
  of(hook: Hook): WebhookClient {
    const { key } = hook;
    let client = this.#known.get(key);
    if (client === undefined) this.#known.set(key, (client = new WebhookClient(hook.clientConfig, this.#parts)));
    return client;
  }

  /** Lets go of those that nobody in `hooks` needs; their calls under way go on. */
  keepOnly(hooks: readonly Hook[]): void {
    const used = new Set(hooks.map(({ key }) => key));
    for (const [key, client] of this.#known) {
      if (used.has(key)) continue;
      this.#known.delete(key);
      client.retire();
    }
  }
}

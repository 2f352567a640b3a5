/** The conversion webhooks of all definitions, each kept as long as its configuration does not change. */
import type { ReviewCallerParts } from '#engine/remote/webhooks/review-caller.ts';
import { ConversionWebhook } from '#engine/conversion/conversion-webhook.ts';
import type { ConversionWebhookConfig } from '#engine/registry/crd/definition.ts';
import type { ObjectConverter } from '#engine/registry/stored-form.ts';

export class ConversionWebhooks {
  readonly #parts: ReviewCallerParts;
  readonly #webhooks = new Map<string, ConversionWebhook>();

  constructor(parts: ReviewCallerParts) {
    this.#parts = parts;
  }

  of(definition: string, config: ConversionWebhookConfig): ConversionWebhook {
    const key = `${definition} ${JSON.stringify(config)}`;
    let webhook = this.#webhooks.get(key);
    if (webhook === undefined) this.#webhooks.set(key, (webhook = new ConversionWebhook(config, this.#parts)));
    return webhook;
  }

  /** Retires unused webhooks; their pending calls continue. */
  keepOnly(used: ReadonlySet<ObjectConverter | undefined>): void {
    for (const [key, webhook] of this.#webhooks) {
      if (used.has(webhook)) continue;
      this.#webhooks.delete(key);
      webhook.retire();
    }
  }
}

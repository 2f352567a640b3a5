/** The conversion webhooks of all definitions: one for each, kept as long as its configuration stays the same. */
import {
  ConversionWebhook,
  type ConversionConfig,
  type ConversionParts,
} from '#engine/conversion/conversion-webhook.ts';

export class ConversionWebhooks {
  readonly #parts: ConversionParts;
  readonly #known = new Map<string, ConversionWebhook>();

  constructor(parts: ConversionParts) {
    this.#parts = parts;
  }

  of(definition: string, config: ConversionConfig): ConversionWebhook {
    const key = `${definition} ${JSON.stringify(config)}`;
    let webhook = this.#known.get(key);
    if (webhook === undefined) this.#known.set(key, (webhook = new ConversionWebhook(config, this.#parts)));
    return webhook;
  }

  /** Lets go of those that nobody uses; their calls under way go on. */
  keepOnly(used: ReadonlySet<ConversionWebhook | undefined>): void {
    for (const [key, webhook] of this.#known) {
      if (used.has(webhook)) continue;
      this.#known.delete(key);
      webhook.retire();
    }
  }
}

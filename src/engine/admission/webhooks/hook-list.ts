/**
 * The webhooks of all configurations of one kind, in sync with the store: effective as soon as a configuration is
 * durable, ordered by configuration name and position.
 */
import type { ReviewCallerParts } from '#engine/remote/webhooks/review-caller.ts';
import { MatchIndex, type Candidate } from '#engine/admission/matching/match-index.ts';
import { matchPartsOf } from '#engine/admission/matching/match-parts.ts';
import type { MatchParts } from '#engine/admission/matching/match-resources.ts';
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import { compileHook, type Hook, type WebhookSpec } from '#engine/admission/webhooks/hook.ts';
import { WebhookClients } from '#engine/admission/webhooks/webhook-clients.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { Entry } from '#engine/store/store.ts';
import type { Log } from '#lib/log.ts';

export type WebhookKind = 'mutating' | 'validating';

const GROUP = 'admissionregistration.k8s.io';
const COLLECTIONS = {
  mutating: `mutatingwebhookconfigurations.${GROUP}`,
  validating: `validatingwebhookconfigurations.${GROUP}`,
} as const;

/** Webhooks do not apply to webhook and policy configurations, so that broken admission can be repaired. */
const EXEMPT: ReadonlySet<string> = new Set([
  COLLECTIONS.mutating,
  COLLECTIONS.validating,
  `validatingadmissionpolicies.${GROUP}`,
  `validatingadmissionpolicybindings.${GROUP}`,
]);

export interface HookListParts extends ReviewCallerParts {
  readonly registry: Registry;
  readonly log: Log;
}

export interface IndexedHook {
  readonly hook: Hook;
  /** Index among all webhooks of the kind, as in audit annotations. */
  readonly index: number;
}

export class HookList {
  readonly clients: WebhookClients;
  readonly #index: MatchIndex<IndexedHook>;
  readonly #parts: HookListParts;
  readonly #match: MatchParts;
  readonly #collection: string;
  readonly #compiled = new WeakMap<Entry, readonly Hook[]>();
  readonly #stop: () => void;

  /** Up to date when the constructor returns. */
  constructor(kind: WebhookKind, parts: HookListParts) {
    const { store, registry } = parts;
    this.#parts = parts;
    this.#match = matchPartsOf(store, registry);
    this.#collection = COLLECTIONS[kind];
    this.#index = new MatchIndex(registry, { exempt: EXEMPT });
    this.clients = new WebhookClients(parts);
    this.#stop = store.watch({ collection: this.#collection, since: store.revision }, () => this.#refresh());
    this.#refresh();
  }

  candidates(attributes: AdmissionAttributes): readonly Candidate<IndexedHook>[] {
    return this.#index.candidates(attributes);
  }

  stop(): void {
    this.#stop();
    this.#index.replace([]);
    this.clients.keepOnly([]);
  }

  #refresh(): void {
    const { entries } = this.#parts.store.list(this.#collection);
    const hooks = entries.flatMap((entry) => this.#hooksOf(entry));
    this.#index.replace(hooks.map((hook, index) => ({ value: { hook, index }, match: hook.match })));
    this.clients.keepOnly(hooks);
  }

  /** An invalid configuration takes only itself out of service. */
  #hooksOf(entry: Entry): readonly Hook[] {
    let hooks = this.#compiled.get(entry);
    if (hooks !== undefined) return hooks;
    try {
      const { metadata, webhooks = [] } = decodeStored(entry.bytes) as Configuration;
      hooks = webhooks.map((spec) => compileHook(metadata.name, spec, this.#match));
    } catch (error) {
      this.#parts.log.error({ err: error, configuration: entry.id }, 'Cannot read a webhook configuration');
      hooks = [];
    }
    this.#compiled.set(entry, hooks);
    return hooks;
  }
}

type Configuration = ReturnType<typeof decodeStored> & {
  readonly metadata: { readonly name: string };
  readonly webhooks?: readonly WebhookSpec[];
};

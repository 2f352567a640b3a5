/**
 * Stored objects of a custom kind in the form of one of its versions. What was written since the definition is as it is
 * now goes out as it lies there, if it is of that version. Everything else is brought into form as Kubernetes does it:
 *
 *   stored bytes ──► defaults of the version they are in ──► converted (None: renamed, Webhook: asked for) ──► pruned
 *
 * Asking takes time, and so do many: `prepare` does it for all of them, and `bytes` finds the answers. Those are kept for
 * as long as the entry lives, so that each is asked for once, however many watch it.
 */
import { CallCanceled } from '#engine/admission/webhooks/call-failure.ts';
import { decodeStored } from '#engine/codec.ts';
import { type ConversionWebhook, conversionFailure } from '#engine/conversion/conversion-webhook.ts';
import { SharedWork } from '#engine/conversion/shared-work.ts';
import { storedText } from '#engine/managed-fields/stored-owners.ts';
import type { CompiledSchema } from '#engine/registry/structural/compile.ts';
import type { Entry } from '#engine/store/store.ts';
import { BoundedCache } from '#lib/bounded-cache.ts';
import { invariant } from '#lib/invariant.ts';
import { deepClone } from '#kube/deep.ts';
import { apiVersionOf, type KubeObject, parseApiVersion } from '#kube/meta.ts';

/** How many objects are brought into form at one go. */
export const FORM_SLICE = 100;

const RECENT = { maxEntries: 64, maxWeight: 1024 * 1024 };

export interface FormOptions {
  readonly group: string;
  readonly version: string;
  readonly storageVersion: string;
  /** The revision by which the definition became what it is. */
  readonly since: number;
  /** undefined = there is no such version any more. */
  schemaOf(version: string): CompiledSchema | undefined;
  /** undefined = versions differ in their name only. */
  readonly webhook: ConversionWebhook | undefined;
}

export class StoredForm {
  readonly #options: FormOptions;
  readonly #apiVersion: string;
  readonly #isStorage: boolean;
  readonly #known = new WeakMap<Entry, Buffer>();
  readonly #recent = new BoundedCache<Entry, Buffer>(RECENT);
  readonly #asking = new WeakMap<Entry, SharedWork>();
  readonly #current = new WeakMap<Entry, boolean>();

  constructor(options: FormOptions) {
    this.#options = options;
    this.#apiVersion = apiVersionOf(options);
    this.#isStorage = options.version === options.storageVersion;
  }

  /** Whether each reader has it made anew: many take long. */
  get isMadeEachTime(): boolean {
    return !this.#isStorage && this.#options.webhook === undefined;
  }

  /** undefined = versions differ in their name only. */
  get webhook(): ConversionWebhook | undefined {
    return this.#options.webhook;
  }

  /** Compiled once for all versions of the kind. undefined = there is no such version. */
  schemaOf(version: string): CompiledSchema | undefined {
    return this.#options.schemaOf(version);
  }

  /** The JSON of an entry. Where `prepare` must be asked first, only after that. */
  bytes(entry: Entry): Buffer {
    const bytes = this.peek(entry);
    invariant(bytes !== undefined, 'what a webhook converts was prepared');
    return bytes;
  }

  /** As `bytes`; undefined = a webhook must be asked first. */
  peek(entry: Entry): Buffer | undefined {
    if (this.#isPlain(entry)) return entry.bytes;
    const known = this.#known.get(entry) ?? this.#recent.get(entry);
    if (known !== undefined) return known;
    const object = decodeStored(entry.bytes);
    if (this.#mustAsk(object)) return undefined;
    this.#applyDefaults(object);
    const bytes = this.#finish(object, entry);
    // Those of other versions would take as much memory again: only what many watch at this moment is kept.
    if (this.#isStorage) this.#known.set(entry, bytes);
    else this.#recent.set(entry, bytes, bytes.length);
    return bytes;
  }

  /** undefined = nothing must be waited for. Rejects with an ApiError. */
  prepare(entries: readonly Entry[], signal: () => AbortSignal): Promise<void> | undefined {
    if (this.isMadeEachTime || !entries.some((entry) => this.#isOld(entry))) return undefined;
    const { webhook } = this.#options;
    const old = entries.filter((entry) => this.#isOld(entry));
    if (webhook === undefined) return old.length > FORM_SLICE ? this.#makeAll(old) : undefined;
    // Few are looked at now: most often they are of this version.
    const asked = old.length > FORM_SLICE ? old : old.filter(({ bytes }) => this.#mustAsk(decodeStored(bytes)));
    return asked.length === 0 ? undefined : this.#askTogether(webhook, asked, signal());
  }

  /** An object of this version as it is to be stored; itself, where that is the version that is stored. */
  toStorage(object: KubeObject, signal: () => AbortSignal): KubeObject | Promise<KubeObject> {
    if (this.#isStorage) return object;
    const { webhook, group, storageVersion } = this.#options;
    const apiVersion = apiVersionOf({ group, version: storageVersion });
    if (webhook !== undefined) {
      return webhook.convert([object], apiVersion, signal()).then(([converted]) => this.#forStorage(converted!));
    }
    const stored = deepClone(object);
    // They get the revision, which whoever wrote it wants to see.
    stored.metadata = object.metadata;
    stored.apiVersion = apiVersion;
    return this.#forStorage(stored);
  }

  /** Whether an entry lies there as it would be written now; if not, an update that changes nothing writes all the same. */
  isCurrent(entry: Entry): boolean {
    if (entry.revision > this.#options.since) return true;
    let current = this.#current.get(entry);
    if (current === undefined) this.#current.set(entry, (current = this.#fitsStorage(entry)));
    return current;
  }

  #isPlain(entry: Entry): boolean {
    return this.#isStorage && entry.revision > this.#options.since;
  }

  #isOld(entry: Entry): boolean {
    return !this.#isPlain(entry) && !this.#known.has(entry);
  }

  #mustAsk({ apiVersion }: KubeObject): boolean {
    return this.#options.webhook !== undefined && apiVersion !== this.#apiVersion;
  }

  #applyDefaults(object: KubeObject): void {
    const { version } = parseApiVersion(object.apiVersion ?? '');
    this.#options.schemaOf(version)?.applyDefaults(object);
  }

  /** What others are asking about already is not asked about again. */
  async #askTogether(
    webhook: ConversionWebhook,
    asked: readonly Entry[],
    signal: AbortSignal,
    last = false,
  ): Promise<void> {
    const others = new Set<SharedWork>();
    const fresh: Entry[] = [];
    for (const entry of asked) {
      const asking = this.#asking.get(entry);
      if (asking === undefined) fresh.push(entry);
      else others.add(asking);
    }
    const own = fresh.length === 0 ? undefined : this.#share(webhook, fresh);
    const joined = [...others].map((work) => (last ? work.wait(signal) : work.wait(signal).catch(() => {})));
    try {
      await Promise.all([own?.wait(signal), ...joined]);
    } catch (error) {
      throw signal.aborted ? conversionFailure(new CallCanceled().message, error) : error;
    }
    // What became of theirs may be due to what else they asked about, or to their leaving.
    const left = last ? [] : asked.filter((entry) => !this.#known.has(entry));
    if (left.length > 0) await this.#askTogether(webhook, left, signal, true);
  }

  #share(webhook: ConversionWebhook, entries: readonly Entry[]): SharedWork {
    const forget = () => {
      for (const entry of entries) if (this.#asking.get(entry) === work) this.#asking.delete(entry);
    };
    const work = new SharedWork((signal) => this.#ask(webhook, entries, signal).finally(forget));
    for (const entry of entries) this.#asking.set(entry, work);
    return work;
  }

  /** In pieces, so that others get their turn between them. */
  async #ask(webhook: ConversionWebhook, entries: readonly Entry[], signal: AbortSignal): Promise<void> {
    for (let at = 0; at < entries.length; at += FORM_SLICE) {
      if (at > 0) await nextTurn();
      const asked: Entry[] = [];
      const objects: KubeObject[] = [];
      for (const entry of entries.slice(at, at + FORM_SLICE)) {
        const object = decodeStored(entry.bytes);
        const isAsked = this.#mustAsk(object);
        this.#applyDefaults(object);
        if (!isAsked) this.#known.set(entry, this.#finish(object, entry));
        else {
          asked.push(entry);
          objects.push(object);
        }
      }
      const converted = objects.length === 0 ? [] : await webhook.convert(objects, this.#apiVersion, signal);
      for (const [i, entry] of asked.entries()) this.#known.set(entry, this.#finish(converted[i]!, entry));
    }
  }

  /** A definition may have changed under thousands of objects: others get their turn meanwhile. */
  async #makeAll(entries: readonly Entry[]): Promise<void> {
    for (const [i, entry] of entries.entries()) {
      if (i > 0 && i % FORM_SLICE === 0) await nextTurn();
      this.bytes(entry);
    }
  }

  #finish(object: KubeObject, entry: Entry): Buffer {
    object.apiVersion = this.#apiVersion;
    this.#options.schemaOf(this.#options.version)?.prune(object);
    return encoded(object, entry);
  }

  #forStorage(object: KubeObject): KubeObject {
    const schema = this.#options.schemaOf(this.#options.storageVersion);
    schema?.prune(object);
    schema?.applyDefaults(object);
    return object;
  }

  #fitsStorage(entry: Entry): boolean {
    const { group, storageVersion: version } = this.#options;
    const object = decodeStored(entry.bytes);
    if (object.apiVersion !== apiVersionOf({ group, version })) return false;
    return encoded(this.#forStorage(object), entry) === entry.bytes;
  }
}

/** The entry's own bytes, where they say the same. */
function encoded(object: KubeObject, entry: Entry): Buffer {
  const bytes = Buffer.from(storedText(object));
  return bytes.equals(entry.bytes) ? entry.bytes : bytes;
}

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

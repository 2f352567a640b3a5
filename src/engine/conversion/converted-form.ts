/**
 * Converts stored objects of a custom kind to one of its versions. An object that was written since the last change of the
 * definition is served as stored, if it has that version. All others are converted as in Kubernetes:
 *
 *   stored bytes ──► defaults of their version ──► converted (None: renamed, Webhook: called) ──► pruned
 *
 * Calling a webhook takes time, and so do many objects: `prepare` converts all of them, and `bytes` returns the results.
 * These are cached as long as the entry lives, so that each is converted once for any number of watchers.
 */
import { CallCanceled } from '#engine/remote/webhooks/call-failure.ts';
import { conversionFailure } from '#engine/conversion/conversion-webhook.ts';
import { SharedWork } from '#engine/conversion/shared-work.ts';
import { decodeStored, storedText } from '#engine/encoding/stored-object.ts';
import { FORM_SLICE, type ObjectConverter, type StoredForm } from '#engine/registry/stored-form.ts';
import type { CompiledSchema } from '#engine/registry/structural/compile.ts';
import type { Entry } from '#engine/store/store.ts';
import { BoundedCache } from '#lib/bounded-cache.ts';
import { invariant } from '#lib/invariant.ts';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { deepClone } from '#kube/deep.ts';
import { apiVersionOf, type KubeObject, parseApiVersion } from '#kube/meta.ts';

const RECENT = { maxEntries: 64, maxWeight: 1024 * 1024 };

interface FormOptions {
  readonly group: string;
  readonly version: string;
  readonly storageVersion: string;
  /** The revision since which the definition has its current generation. */
  readonly since: number;
  /** Returns undefined if the version no longer exists. */
  schemaOf(version: string): CompiledSchema | undefined;
  /** Undefined if the versions differ only in apiVersion. */
  readonly webhook: ObjectConverter | undefined;
}

export class ConvertedForm implements StoredForm {
  readonly #options: FormOptions;
  readonly #apiVersion: string;
  readonly #isStorage: boolean;
  readonly #converted = new WeakMap<Entry, Buffer>();
  readonly #recent = new BoundedCache<Entry, Buffer>(RECENT);
  readonly #pending = new WeakMap<Entry, SharedWork>();
  readonly #current = new WeakMap<Entry, boolean>();

  constructor(options: FormOptions) {
    this.#options = options;
    this.#apiVersion = apiVersionOf(options);
    this.#isStorage = options.version === options.storageVersion;
  }

  get convertsOnEachRead(): boolean {
    return !this.#isStorage && this.#options.webhook === undefined;
  }

  get webhook(): ObjectConverter | undefined {
    return this.#options.webhook;
  }

  schemaOf(version: string): CompiledSchema | undefined {
    return this.#options.schemaOf(version);
  }

  bytes(entry: Entry): Buffer {
    const bytes = this.peek(entry);
    invariant(bytes !== undefined, 'entries that a webhook converts are prepared');
    return bytes;
  }

  peek(entry: Entry): Buffer | undefined {
    if (this.#isPlain(entry)) return entry.bytes;
    const known = this.#converted.get(entry) ?? this.#recent.get(entry);
    if (known !== undefined) return known;
    const object = decodeStored(entry.bytes);
    if (this.#needsWebhook(object)) return undefined;
    this.#applyDefaults(object);
    const bytes = this.#finish(object, entry);
    // Caching other versions would double the memory: only recent ones are cached, for concurrent watchers.
    if (this.#isStorage) this.#converted.set(entry, bytes);
    else this.#recent.set(entry, bytes, bytes.length);
    return bytes;
  }

  prepare(entries: readonly Entry[], signal: () => AbortSignal): Promise<void> | undefined {
    if (this.convertsOnEachRead || !entries.some((entry) => this.#isOld(entry))) return undefined;
    const { webhook } = this.#options;
    const old = entries.filter((entry) => this.#isOld(entry));
    if (webhook === undefined) return old.length > FORM_SLICE ? this.#convertAll(old) : undefined;
    // A few entries are checked now: most often they have this version.
    const toConvert =
      old.length > FORM_SLICE ? old : old.filter(({ bytes }) => this.#needsWebhook(decodeStored(bytes)));
    return toConvert.length === 0 ? undefined : this.#convertTogether(webhook, toConvert, signal());
  }

  toStorage(object: KubeObject, signal: () => AbortSignal): KubeObject | Promise<KubeObject> {
    if (this.#isStorage) return object;
    const { webhook, group, storageVersion } = this.#options;
    const apiVersion = apiVersionOf({ group, version: storageVersion });
    if (webhook !== undefined) {
      return webhook.convert([object], apiVersion, signal()).then(([converted]) => this.#forStorage(converted!));
    }
    const stored = deepClone(object);
    // Shared, because the writer wants to see the revision that is set here.
    stored.metadata = object.metadata;
    stored.apiVersion = apiVersion;
    return this.#forStorage(stored);
  }

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
    return !this.#isPlain(entry) && !this.#converted.has(entry);
  }

  #needsWebhook({ apiVersion }: KubeObject): boolean {
    return this.#options.webhook !== undefined && apiVersion !== this.#apiVersion;
  }

  #applyDefaults(object: KubeObject): void {
    const { version } = parseApiVersion(object.apiVersion ?? '');
    this.#options.schemaOf(version)?.applyDefaults(object);
  }

  /** Waits for conversions that other readers already started instead of starting them again. */
  async #convertTogether(
    webhook: ObjectConverter,
    toConvert: readonly Entry[],
    signal: AbortSignal,
    last = false,
  ): Promise<void> {
    const others = new Set<SharedWork>();
    const fresh: Entry[] = [];
    for (const entry of toConvert) {
      const asking = this.#pending.get(entry);
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
    // A conversion of another reader may have failed because of other objects or a cancellation.
    const left = last ? [] : toConvert.filter((entry) => !this.#converted.has(entry));
    if (left.length > 0) await this.#convertTogether(webhook, left, signal, true);
  }

  #share(webhook: ObjectConverter, entries: readonly Entry[]): SharedWork {
    const forget = () => {
      for (const entry of entries) if (this.#pending.get(entry) === work) this.#pending.delete(entry);
    };
    const work = new SharedWork((signal) => this.#callWebhook(webhook, entries, signal).finally(forget));
    for (const entry of entries) this.#pending.set(entry, work);
    return work;
  }

  /** Converts in batches and yields to other requests in between. */
  async #callWebhook(webhook: ObjectConverter, entries: readonly Entry[], signal: AbortSignal): Promise<void> {
    for (let at = 0; at < entries.length; at += FORM_SLICE) {
      if (at > 0) await nextTurn();
      const toConvert: Entry[] = [];
      const objects: KubeObject[] = [];
      for (const entry of entries.slice(at, at + FORM_SLICE)) {
        const object = decodeStored(entry.bytes);
        const needsWebhook = this.#needsWebhook(object);
        this.#applyDefaults(object);
        if (!needsWebhook) this.#converted.set(entry, this.#finish(object, entry));
        else {
          toConvert.push(entry);
          objects.push(object);
        }
      }
      const converted = objects.length === 0 ? [] : await webhook.convert(objects, this.#apiVersion, signal);
      for (const [i, entry] of toConvert.entries()) this.#converted.set(entry, this.#finish(converted[i]!, entry));
    }
  }

  /** A definition may have changed for thousands of objects, so this yields to other requests. */
  async #convertAll(entries: readonly Entry[]): Promise<void> {
    for (const [i, entry] of entries.entries()) {
      if (i > 0 && i % FORM_SLICE === 0) await nextTurn();
      this.bytes(entry);
    }
  }

  #finish(object: KubeObject, entry: Entry): Buffer {
    object.apiVersion = this.#apiVersion;
    this.#options.schemaOf(this.#options.version)?.prune(object);
    return encodeForm(object, entry);
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
    return encodeForm(this.#forStorage(object), entry) === entry.bytes;
  }
}

/** Returns the entry's own bytes if they are equal. */
function encodeForm(object: KubeObject, entry: Entry): Buffer {
  const bytes = Buffer.from(storedText(object));
  return bytes.equals(entry.bytes) ? entry.bytes : bytes;
}

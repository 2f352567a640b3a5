/**
 * Stored objects of a custom kind in the form of one of its versions. What was written since the definition is as it is
 * now goes out as it lies there, if it is of that version. Everything else is brought into form as Kubernetes does it:
 *
 *   stored bytes ──► defaults of the version they are in ──► converted (None: renamed, Webhook: asked for) ──► pruned
 *
 * Asking takes time, and so do many: `prepare` does it for all of them, and `bytes` finds the answers. Those are kept for
 * as long as the entry lives, so that each is asked for once.
 */
import { decodeStored } from '#engine/codec.ts';
import type { ConversionWebhook } from '#engine/conversion/conversion-webhook.ts';
import type { CompiledSchema } from '#engine/registry/structural/compile.ts';
import type { Entry } from '#engine/store/store.ts';
import { invariant } from '#lib/invariant.ts';
import { deepClone } from '#kube/deep.ts';
import { apiVersionOf, type KubeObject, parseApiVersion } from '#kube/meta.ts';

/** How many objects are brought into form at one go. */
const SLICE = 100;

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
  readonly #known = new WeakMap<Entry, Buffer>();
  readonly #current = new WeakMap<Entry, boolean>();

  constructor(options: FormOptions) {
    this.#options = options;
    this.#apiVersion = apiVersionOf(options);
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
    const known = this.#known.get(entry);
    if (known !== undefined) return known;
    const object = decodeStored(entry.bytes);
    if (this.#mustAsk(object)) return undefined;
    this.#applyDefaults(object);
    const bytes = this.#finish(object, entry);
    // Those of other versions are made again for each reader, as they always were: they would take as much memory again.
    if (this.#isStorage) this.#known.set(entry, bytes);
    return bytes;
  }

  /** undefined = nothing must be waited for. Rejects with an ApiError. */
  prepare(entries: readonly Entry[], signal: () => AbortSignal): Promise<void> | undefined {
    const { webhook } = this.#options;
    // Made again for each reader.
    if (webhook === undefined && !this.#isStorage) return undefined;
    const old = entries.filter((entry) => !this.#isPlain(entry) && !this.#known.has(entry));
    if (webhook === undefined) return old.length > SLICE ? this.#makeAll(old) : undefined;
    const asked: Entry[] = [];
    const objects: KubeObject[] = [];
    for (const entry of old) {
      const object = decodeStored(entry.bytes);
      if (!this.#mustAsk(object)) continue;
      this.#applyDefaults(object);
      asked.push(entry);
      objects.push(object);
    }
    return asked.length === 0 ? undefined : this.#ask(webhook, asked, objects, signal());
  }

  /** An object of this version as it is to be stored; itself, where that is the version that is stored. */
  toStorage(object: KubeObject, signal: AbortSignal): KubeObject | Promise<KubeObject> {
    if (this.#isStorage) return object;
    const { webhook, group, storageVersion } = this.#options;
    const apiVersion = apiVersionOf({ group, version: storageVersion });
    if (webhook !== undefined) {
      return webhook.convert([object], apiVersion, signal).then(([converted]) => this.#forStorage(converted!));
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

  get #isStorage(): boolean {
    return this.#options.version === this.#options.storageVersion;
  }

  #isPlain(entry: Entry): boolean {
    return entry.revision > this.#options.since && this.#isStorage;
  }

  #mustAsk({ apiVersion }: KubeObject): boolean {
    return this.#options.webhook !== undefined && apiVersion !== this.#apiVersion;
  }

  #applyDefaults(object: KubeObject): void {
    const { version } = parseApiVersion(object.apiVersion ?? '');
    this.#options.schemaOf(version)?.applyDefaults(object);
  }

  async #ask(
    webhook: ConversionWebhook,
    asked: readonly Entry[],
    objects: readonly KubeObject[],
    signal: AbortSignal,
  ): Promise<void> {
    const converted = await webhook.convert(objects, this.#apiVersion, signal);
    for (const [i, entry] of asked.entries()) this.#known.set(entry, this.#finish(converted[i]!, entry));
  }

  /** A definition may have changed under thousands of objects: others get their turn meanwhile. */
  async #makeAll(entries: readonly Entry[]): Promise<void> {
    for (const [i, entry] of entries.entries()) {
      if (i > 0 && i % SLICE === 0) await new Promise((resolve) => setImmediate(resolve));
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
  const bytes = Buffer.from(JSON.stringify(object));
  return bytes.equals(entry.bytes) ? entry.bytes : bytes;
}

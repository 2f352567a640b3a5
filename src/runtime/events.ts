/**
 * Kubernetes Events (core/v1): report to users what was done to an object. Recording never blocks the caller and never
 * throws; an Event that cannot be written is dropped. The same Event within ten minutes increments a count instead.
 */
import { delay } from '#client/abort.ts';
import type { Writer } from '#client/client.ts';
import { ApiError, isApiError } from '#kube/api-error.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { backoffMs } from '#lib/backoff.ts';
import { timestamp } from '#lib/clock.ts';
import type { Clock } from '#lib/clock.ts';
import { randomSuffix } from '#lib/ids.ts';
import type { Log } from '#lib/log.ts';

export interface EventNote {
  readonly type: 'Normal' | 'Warning';
  /** The reason for programs, in CamelCase. */
  readonly reason: string;
  /** The text for users. */
  readonly message: string;
}

export interface EventSink {
  record(about: KubeObject, note: EventNote): void;
}

export const EVENTS: ResourceType = { group: '', version: 'v1', kind: 'Event', plural: 'events', namespaced: true };

/** Discards Events. */
export const noEvents: EventSink = { record() {} };

interface EventRecorderOptions {
  readonly writer: Pick<Writer, 'create' | 'patch'>;
  readonly clock: Clock;
  readonly log: Log;
  /** The reporting component: `vm-controller`. */
  readonly component: string;
  /** The instance of the component: the name of a host or pod. */
  readonly instance?: string;
  readonly signal: AbortSignal;
}

const AGGREGATION_MS = 600_000;
const MAX_KNOWN = 4096;
const MAX_PENDING = 1000;
const MAX_ATTEMPTS = 5;
const RETRY = { firstMs: 1000, maxMs: 30_000 };
/** The API refuses longer messages. */
const MAX_MESSAGE = 1024;
const MAX_NAME = 253;
const SUFFIX_LENGTH = 16;

/** An Event object and its repetitions that are not written yet. */
interface Series {
  readonly key: string;
  readonly namespace: string;
  /** The name of the involved object. */
  readonly about: string;
  object: KubeObject;
  /** True if the server may have created the Event although we did not receive a response. */
  sent: boolean;
  readonly firstMs: number;
  lastMs: number;
  count: number;
  created: boolean;
}

export class EventRecorder implements EventSink {
  readonly #options: EventRecorderOptions;
  /** In order of their last use, so that the oldest is removed first. */
  readonly #known = new Map<string, Series>();
  /** Series that the server does not have yet. Repetitions in the meantime are sent together. */
  readonly #pending = new Set<Series>();
  #sending: Promise<void> | undefined;
  #dropped = 0;
  #sequence = 0;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  record(about: KubeObject, note: EventNote): void {
    if (this.#options.signal.aborted) return;
    const series = this.#seriesFor(about, note);
    if (!this.#pending.has(series) && this.#pending.size >= MAX_PENDING) {
      this.#known.delete(series.key);
      this.#dropped++;
      return;
    }
    this.#pending.add(series);
    this.#sending ??= this.#sendAll();
  }

  /** The number of Events that are remembered, so that a repetition increments their count. */
  get knownCount(): number {
    return this.#known.size;
  }

  /** Resolves when everything recorded so far was sent or dropped. */
  async idle(): Promise<void> {
    while (this.#sending !== undefined) await this.#sending;
  }

  #seriesFor(about: KubeObject, note: EventNote): Series {
    const now = this.#options.clock.now();
    const { kind, metadata } = about;
    const identity = [kind, metadata.namespace, metadata.name, metadata.uid, note.type, note.reason, note.message];
    const key = JSON.stringify(identity);
    let series = this.#known.get(key);
    if (series === undefined || now - series.lastMs >= AGGREGATION_MS) series = this.#newSeries(key, about, note, now);
    else series.count++;
    series.lastMs = now;
    this.#known.delete(key);
    this.#known.set(key, series);
    this.#forgetOld(now);
    return series;
  }

  /** Forgets series that cannot be continued any more, and the oldest ones if there are too many. */
  #forgetOld(now: number): void {
    for (const [key, { lastMs }] of this.#known) {
      if (this.#known.size <= MAX_KNOWN && now - lastMs < AGGREGATION_MS) return;
      this.#known.delete(key);
    }
  }

  #newSeries(key: string, about: KubeObject, note: EventNote, now: number): Series {
    const { component, instance = '' } = this.#options;
    const { name = '', namespace, uid, resourceVersion } = about.metadata;
    // Like client-go, puts Events about cluster-scoped objects into `default`.
    const eventNamespace = namespace === undefined || namespace === '' ? 'default' : namespace;
    const object = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: this.#nameFor(name, now), namespace: eventNamespace },
      involvedObject: { apiVersion: about.apiVersion, kind: about.kind, namespace, name, uid, resourceVersion },
      type: note.type,
      reason: note.reason,
      message: truncateToBytes(note.message, MAX_MESSAGE),
      source: { component },
      reportingComponent: component,
      reportingInstance: instance,
    };
    return {
      key,
      namespace: eventNamespace,
      about: name,
      object,
      sent: false,
      firstMs: now,
      lastMs: now,
      count: 1,
      created: false,
    };
  }

  #nameFor(about: string, now: number): string {
    return `${about.slice(0, MAX_NAME - SUFFIX_LENGTH - 1)}.${this.#suffix(now)}`;
  }

  /**
   * Like client-go, nanoseconds in hex, so that names sort by time. The digits below a millisecond make the name
   * unique.
   */
  #suffix(now: number): string {
    this.#sequence = (this.#sequence + 1) % 1000;
    const random = Number.parseInt(randomSuffix(2), 36) % 1000;
    return (BigInt(Math.trunc(now)) * 1_000_000n + BigInt(this.#sequence * 1000 + random)).toString(16);
  }

  async #sendAll(): Promise<void> {
    const { signal, log } = this.#options;
    // In a later tick, so that `record` returns first.
    await Promise.resolve();
    for (const series of this.#pending) {
      if (signal.aborted) break;
      this.#pending.delete(series);
      await this.#send(series);
    }
    if (this.#dropped > 0) log.warn({ dropped: this.#dropped }, 'too many Events at once; some were dropped');
    this.#dropped = 0;
    if (signal.aborted) this.#pending.clear();
    // In the same tick as the last check of #pending, so that the next `record` starts again.
    this.#sending = undefined;
  }

  async #send(series: Series): Promise<void> {
    const { signal, clock, log } = this.#options;
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        return await this.#write(series);
      } catch (error) {
        if (signal.aborted) return;
        if (attempt >= MAX_ATTEMPTS || !isRetriable(error)) {
          this.#known.delete(series.key);
          const event = series.object.metadata.name;
          // The end of the objects of a namespace under deletion is reported to nobody.
          if (isNamespaceGone(error)) log.debug({ event, reason: error.message }, 'Dropping an Event');
          else log.warn({ err: error, event }, 'Cannot write an Event; dropping it');
          return;
        }
        await delay(clock, backoffMs(attempt, RETRY), { signal });
      }
    }
  }

  async #write(series: Series): Promise<void> {
    const { writer, signal } = this.#options;
    const { namespace, count } = series;
    const lastTimestamp = timestamp(series.lastMs);
    if (series.created) {
      const patch = { type: 'merge', body: { count, lastTimestamp } } as const;
      try {
        await writer.patch(EVENTS, { namespace, name: series.object.metadata.name! }, patch, { signal });
        return;
      } catch (error) {
        // The server keeps Events only for a short time.
        if (!isApiError(error, 'NotFound')) throw error;
      }
    }
    const event = { ...series.object, count, firstTimestamp: timestamp(series.firstMs), lastTimestamp };
    const isFirstAttempt = !series.sent;
    series.sent = true;
    try {
      await writer.create(EVENTS, event, { signal });
    } catch (error) {
      if (!isApiError(error, 'AlreadyExists')) throw error;
      // Otherwise an earlier attempt was successful although its response was lost.
      if (isFirstAttempt) {
        const metadata = { ...series.object.metadata, name: this.#nameFor(series.about, series.firstMs) };
        series.object = { ...series.object, metadata };
        await writer.create(EVENTS, { ...event, metadata }, { signal });
      }
    }
    series.created = true;
  }
}

/** Reports whether a retry can help: not after a refusal, but if the server is unavailable or busy. */
function isRetriable(error: unknown): boolean {
  return !(error instanceof ApiError) || error.code === 429 || error.code >= 500;
}

/** Reports whether nothing can be created because the namespace is being deleted, or was deleted. */
function isNamespaceGone(error: unknown): error is ApiError {
  if (isApiError(error, 'NotFound')) return true;
  const causes = isApiError(error, 'Forbidden') ? error.details?.causes : undefined;
  return causes?.some(({ reason }) => reason === 'NamespaceTerminating') === true;
}

function truncateToBytes(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  const truncated = Buffer.from(text)
    .subarray(0, maxBytes - 3)
    .toString('utf8');
  // The end may be in the middle of a character.
  return `${truncated.replace(/\uFFFD+$/, '')}...`;
}

/**
 * Watch: streams the changes of a collection as they become durable, each once and in order.
 *
 *   start ──► initial list (no resourceVersion, 0, or sendInitialEvents) ──► bookmark "initial-events-end" if requested
 *         └─► replay after resourceVersion ──► live, bookmarks every minute ──► timeout: last bookmark, end
 *
 * Initial and replayed events are sent in pieces, as the watcher reads (watch-outbox.ts). A watcher that does not read is
 * cut off at a limit; it can resume from its last revision.
 */
import { prepareEntries, type Call } from '#engine/handlers/call.ts';
import {
  entryId,
  idPrefix,
  entryFilter,
  matchUnits,
  onlyName,
  peekObject,
  type EntryFilter,
} from '#engine/registry/stored-entries.ts';
import { awaitRevision } from '#engine/handlers/await-revision.ts';
import { frameEncoder, jsonLine, type FrameEncoder } from '#engine/handlers/watch/watch-frames.ts';
import { JSON_TYPE } from '#engine/encoding/media-types.ts';
import { WatchOutbox } from '#engine/handlers/watch/watch-outbox.ts';
import { WatchSequencer } from '#engine/handlers/watch/watch-sequencer.ts';
import { BOOKMARK_INTERVAL_MS, WATCH_LINGER_MS, WATCH_TIMEOUT_MS } from '#engine/request/limits.ts';
import { watchOptions, type WatchRequestOptions } from '#engine/handlers/options.ts';
import type { ApiResponse, StreamSink } from '#engine/request/request.ts';
import { RevisionGoneError, type Entry, type StoreEvent } from '#engine/store/store.ts';
import { CRD_COLLECTION } from '#engine/registry/crd/definition.ts';
import { ApiError, gone } from '#kube/api-error.ts';
import { addJitter } from '#lib/backoff.ts';

const INITIAL_EVENTS_END = { 'k8s.io/initial-events-end': 'true' };

export async function watchObjects(call: Call): Promise<ApiResponse> {
  const options = narrowToName(call, watchOptions(call.request.query));
  const filter = entryFilter(call.served.resource, options);
  const frames = frameEncoder(call);
  if (options.resourceVersion !== undefined) await awaitRevision(call, options.resourceVersion);
  const turn = call.pace.spend(startUnits(call, options));
  if (turn !== undefined) await turn;
  return { status: 200, contentType: JSON_TYPE, stream: (sink) => startWatch(call, { options, filter, frames }, sink) };
}

/** Converts a watch on an item's path to one by name. */
function narrowToName(call: Call, options: WatchRequestOptions): WatchRequestOptions {
  const { name } = call.route;
  if (name === '') return options;
  return { ...options, fields: [...options.fields, { field: 'metadata.name', operator: '=', value: name }] };
}

/** The flat time of a watch, and that of one entry or event that it starts with, in units of lib/fair-turns.ts. */
const WATCH_UNITS = 256;
const ENTRY_UNITS = 1;

function startUnits({ store, served, route }: Call, options: WatchRequestOptions): number {
  const { resource } = served;
  if (wantsInitialList(options)) {
    if (onlyName(options.fields) !== undefined && (!resource.namespaced || route.namespace !== '')) return WATCH_UNITS;
    const range = { prefix: idPrefix(resource, route.namespace), limit: 0 };
    return WATCH_UNITS + ENTRY_UNITS * store.list(resource.collection, range).remaining;
  }
  return WATCH_UNITS + ENTRY_UNITS * Math.max(0, store.revision - (options.resourceVersion ?? store.revision));
}

function wantsInitialList({ initialEvents, resourceVersion }: WatchRequestOptions): boolean {
  return initialEvents ?? (resourceVersion === undefined || resourceVersion === 0);
}

interface WatchRequest {
  readonly options: WatchRequestOptions;
  readonly filter: EntryFilter | undefined;
  readonly frames: FrameEncoder;
}

function startWatch(call: Call, { options, filter, frames }: WatchRequest, sink: StreamSink): () => void {
  const { store, clock } = call;
  const { resource } = call.served;
  const cleanups: (() => void)[] = [];
  let open = true;

  const stop = () => {
    open = false;
    outbox.clear();
    for (const cleanup of cleanups) cleanup();
  };
  const finish = () => {
    if (!open) return;
    stop();
    sink.end();
  };
  /** An internal error ends only this watch. */
  const failed = (error: unknown) => {
    call.log.error({ err: error, path: call.request.path }, 'Watch failed');
    finish();
  };
  const outbox = new WatchOutbox(sink, call.pace, { onDone: finish, onFailure: failed });
  const turns = new WatchSequencer({
    prepare: (entries) => prepareEntries(call, entries),
    onOverflow: finish,
    onFailure(error) {
      if (!(error instanceof ApiError)) return failed(error);
      outbox.add(() => jsonLine({ type: 'ERROR', object: error.toStatus() }));
      outbox.end();
    },
  });
  cleanups.push(() => turns.stop());
  const bookmark = (annotations?: Record<string, string>) => {
    const { revision } = store;
    turns.run([], () => outbox.add(() => frames.bookmark(revision, annotations)));
  };

  const wantsList = wantsInitialList(options);
  const since = wantsList ? store.revision : (options.resourceVersion ?? store.revision);
  if (wantsList) {
    const entries = initialEntries(call, options);
    turns.run(entries, () => {
      outbox.addAll({
        items: entries,
        frame: (entry) => (filter === undefined || filter(entry) ? frames.initial(entry) : undefined),
        units: (entry) => frames.units(entry, false) + (filter === undefined ? 0 : matchUnits(options, entry)),
      });
    });
    if (options.initialEvents && options.bookmarks) bookmark(INITIAL_EVENTS_END);
    turns.run([], () => outbox.flush());
  }

  const addReplay = (events: readonly StoreEvent[]) => {
    outbox.addAll({
      items: events,
      frame: (event) => frameOf(event, frames, filter)?.(),
      units: ({ entry, previous = entry }) =>
        frames.units(entry, false) +
        (filter === undefined ? 0 : matchUnits(options, entry) + matchUnits(options, previous)),
    });
  };
  const addLive = (events: readonly StoreEvent[]) => {
    const concerning = events.flatMap((event) => {
      const frame = frameOf(event, frames, filter);
      return frame === undefined ? [] : [{ frame, entry: event.entry }];
    });
    outbox.addAll({
      items: concerning,
      frame: ({ frame }) => frame(),
      units: ({ entry }) => frames.units(entry, true),
      weight: ({ entry }) => entry.bytes.length,
    });
  };
  const addEvents = (events: readonly StoreEvent[], isLive: boolean) => {
    if (isLive) addLive(events);
    else addReplay(events);
    outbox.flush();
  };
  let live = false;
  const shared = filter === undefined ? frames.batch : undefined;
  const converts = resource.stored?.webhook !== undefined;
  const listener = (events: readonly StoreEvent[]) => {
    try {
      if (live && shared !== undefined && outbox.ready && turns.idle) sink.write(shared(events));
      else if (converts || !turns.idle) turns.runAll(events, live, (isLive) => addEvents(events, isLive));
      else addEvents(events, live);
    } catch (error) {
      failed(error);
    }
  };
  try {
    const prefix = idPrefix(resource, call.route.namespace);
    cleanups.push(store.watch({ collection: resource.collection, prefix, since }, listener));
  } catch (error) {
    if (!(error instanceof RevisionGoneError)) throw error;
    turns.run([], () => {
      outbox.add(() => jsonLine({ type: 'ERROR', object: tooOld(since, error.compactedRevision) }));
      outbox.end();
    });
    return stop;
  }
  // The replay has been delivered; later events are live and bounded.
  live = true;
  outbox.flush();

  if (!resource.builtIn) cleanups.push(onChangedKind(call, finish));
  if (options.bookmarks) {
    const send = () => {
      bookmark();
      turns.run([], () => outbox.flush());
    };
    cleanups.push(every(call, BOOKMARK_INTERVAL_MS, send));
  }
  const { timeoutSeconds } = options;
  cleanups.push(
    clock.after(timeoutSeconds === undefined ? addJitter(WATCH_TIMEOUT_MS) : timeoutSeconds * 1000, () => {
      if (options.bookmarks) bookmark();
      turns.run([], () => outbox.end());
      // A watcher that does not read must not hold memory.
      if (open) cleanups.push(clock.after(WATCH_LINGER_MS, finish));
    }),
  );
  return stop;
}

/**
 * Ends a watch when its definition changes or is deleted, because objects are shown in the old form; clients then start
 * again.
 */
function onChangedKind({ store, served }: Call, finish: () => void): () => void {
  const id = served.resource.collection;
  const concerns = ({ type, entry, previous }: StoreEvent) =>
    entry.id === id && (type === 'delete' || previous === undefined || generationOf(previous) !== generationOf(entry));
  return store.watch({ collection: CRD_COLLECTION, prefix: id, since: store.revision }, (events) => {
    if (events.some(concerns)) finish();
  });
}

function generationOf(entry: Entry): number | undefined {
  return peekObject(entry).metadata.generation;
}

function tooOld(revision: number, compacted: number): unknown {
  return gone(`too old resource version: ${revision} (${compacted})`).toStatus();
}

/** Returns the entries that may match. A filter may examine only prepared entries. */
function initialEntries(call: Call, options: WatchRequestOptions): readonly Entry[] {
  const { resource } = call.served;
  const { namespace } = call.route;
  const name = onlyName(options.fields);
  if (name !== undefined && (!resource.namespaced || namespace !== '')) {
    const entry = call.store.get(resource.collection, entryId(resource, namespace, name));
    return entry === undefined ? [] : [entry];
  }
  return call.store.list(resource.collection, { prefix: idPrefix(resource, namespace) }).entries;
}

/**
 * Returns a function that encodes the frame of an event once there is space, or undefined if the event does not concern
 * the watcher.
 */
function frameOf(event: StoreEvent, frames: FrameEncoder, filter: EntryFilter | undefined): (() => Buffer) | undefined {
  const { entry, previous } = event;
  const before = previous !== undefined && (filter === undefined || filter(previous));
  if (event.type === 'delete') return before ? () => frames.live('DELETED', entry) : undefined;
  const after = filter === undefined || filter(entry);
  if (after) return () => frames.live(before ? 'MODIFIED' : 'ADDED', entry);
  return before ? () => frames.leftSelection({ ...event, previous }) : undefined;
}

function every({ clock }: Call, ms: number, fn: () => void): () => void {
  let cancel: () => void;
  const next = () => {
    cancel = clock.after(ms, () => {
      fn();
      next();
    });
  };
  next();
  return () => cancel();
}

/**
 * Watch: the changes of a collection as they become durable, each once and in order.
 *
 *   start ──► initial list (no resourceVersion, 0, or sendInitialEvents) ──► bookmark "initial-events-end" if asked
 *         └─► replay after resourceVersion ──► live, bookmarks every minute ──► timeout: last bookmark, end
 *
 * A watcher that does not read is cut off at a bound; it resumes from its last revision.
 */
import { entryId, idPrefix, type Call } from '#engine/handlers/call.ts';
import { awaitRevision } from '#engine/handlers/await-revision.ts';
import { entryFilter, onlyName, type EntryFilter } from '#engine/handlers/selection.ts';
import { frameMaker, jsonLine, type FrameMaker } from '#engine/handlers/watch-frames.ts';
import { JSON_TYPE } from '#engine/codec.ts';
import { BOOKMARK_INTERVAL_MS, MAX_WATCH_BUFFER_BYTES, WATCH_TIMEOUT_SECONDS } from '#engine/limits.ts';
import { watchOptions, type WatchOptions } from '#engine/options.ts';
import type { ApiResponse, StreamSink } from '#engine/request.ts';
import { RevisionGoneError, type Entry, type StoreEvent } from '#engine/store/store.ts';
import { gone } from '#kube/api-error.ts';

const INITIAL_EVENTS_END = { 'k8s.io/initial-events-end': 'true' };

export async function watch(call: Call): Promise<ApiResponse> {
  const options = narrowed(call, watchOptions(call.request.query));
  const filter = entryFilter(call.served.resource, options);
  if (options.resourceVersion !== undefined) await awaitRevision(call, options.resourceVersion);
  return { status: 200, contentType: JSON_TYPE, stream: (sink) => startWatch(call, options, filter, sink) };
}

/** A watch on an item's own path is one by its name. */
function narrowed(call: Call, options: WatchOptions): WatchOptions {
  const { name } = call.route;
  if (name === '') return options;
  return { ...options, fields: [...options.fields, { field: 'metadata.name', operator: '=', value: name }] };
}

function startWatch(call: Call, options: WatchOptions, filter: EntryFilter | undefined, sink: StreamSink): () => void {
  const { store, clock } = call;
  const { collection } = call.served.resource;
  const frames = frameMaker(call);
  const cleanups: (() => void)[] = [];
  let open = true;

  const stop = () => {
    open = false;
    for (const cleanup of cleanups) cleanup();
  };
  const finish = () => {
    if (!open) return;
    stop();
    sink.end();
  };
  const send = (bytes: Buffer) => {
    if (!open) return;
    sink.write(bytes);
    if (sink.bufferedBytes > MAX_WATCH_BUFFER_BYTES) finish();
  };
  const bookmark = () => send(frames.bookmark(store.revision));

  const wantsList = options.initialEvents || options.resourceVersion === undefined || options.resourceVersion === 0;
  const since = wantsList ? store.revision : options.resourceVersion;
  if (wantsList) {
    for (const entry of initialEntries(call, options, filter)) send(frames.initial(entry));
  }
  if (options.initialEvents && options.bookmarks) send(frames.bookmark(since, INITIAL_EVENTS_END));

  try {
    const prefix = idPrefix(call.served.resource, call.route.namespace);
    const listener = (events: readonly StoreEvent[]) => {
      const bytes = batch(events, frames, filter);
      if (bytes !== undefined) send(bytes);
    };
    cleanups.push(store.watch({ collection, prefix, since }, listener));
  } catch (error) {
    if (!(error instanceof RevisionGoneError)) throw error;
    send(jsonLine({ type: 'ERROR', object: tooOld(since, error.compactedRevision) }));
    finish();
    return stop;
  }

  if (options.bookmarks) cleanups.push(every(call, BOOKMARK_INTERVAL_MS, bookmark));
  const seconds = options.timeoutSeconds ?? WATCH_TIMEOUT_SECONDS;
  cleanups.push(
    clock.after(seconds * 1000, () => {
      if (options.bookmarks) bookmark();
      finish();
    }),
  );
  return stop;
}

function tooOld(revision: number, compacted: number): unknown {
  return gone(`too old resource version: ${revision} (${compacted})`).toStatus();
}

function initialEntries(call: Call, options: WatchOptions, filter: EntryFilter | undefined): readonly Entry[] {
  const { resource } = call.served;
  const { namespace } = call.route;
  const name = onlyName(options.fields);
  if (name !== undefined && (!resource.namespaced || namespace !== '')) {
    const entry = call.store.get(resource.collection, entryId(resource, namespace, name));
    return entry !== undefined && filter!(entry) ? [entry] : [];
  }
  const { entries } = call.store.list(resource.collection, { prefix: idPrefix(resource, namespace) });
  return filter === undefined ? entries : entries.filter(filter);
}

/** All frames of one commit in one piece: one write for each watcher. */
function batch(events: readonly StoreEvent[], frames: FrameMaker, filter: EntryFilter | undefined): Buffer | undefined {
  const pieces: Buffer[] = [];
  for (const event of events) {
    const frame = frameOf(event, frames, filter);
    if (frame !== undefined) pieces.push(frame);
  }
  return pieces.length <= 1 ? pieces[0] : Buffer.concat(pieces);
}

function frameOf(event: StoreEvent, frames: FrameMaker, filter: EntryFilter | undefined): Buffer | undefined {
  const { entry, previous } = event;
  const before = previous !== undefined && (filter === undefined || filter(previous));
  if (event.type === 'delete') return before ? frames.live('DELETED', entry) : undefined;
  const after = filter === undefined || filter(entry);
  if (after) return frames.live(before ? 'MODIFIED' : 'ADDED', entry);
  return before ? frames.left({ ...event, previous }) : undefined;
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

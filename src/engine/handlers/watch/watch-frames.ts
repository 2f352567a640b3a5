/**
 * Encodes watch events as bytes. A frame is encoded once per event and type and shared by all watchers. Tables, other
 * versions and the last state of an object that left a selection are encoded for a single watcher.
 */
import { decodeEntry, servedBytes, type Call } from '#engine/handlers/call.ts';
import { tableOptions } from '#engine/handlers/respond.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { Entry, StoreEvent } from '#engine/store/store.ts';
import { partialMetadata } from '#engine/tables/partial-metadata.ts';
import { tableOf } from '#engine/tables/table.ts';
import { BoundedCache } from '#lib/bounded-cache.ts';
import { apiVersionOf, type KubeObject } from '#kube/meta.ts';

type FrameType = 'ADDED' | 'MODIFIED' | 'DELETED';

const HEADS: Record<FrameType, Buffer> = {
  ADDED: Buffer.from('{"type":"ADDED","object":'),
  MODIFIED: Buffer.from('{"type":"MODIFIED","object":'),
  DELETED: Buffer.from('{"type":"DELETED","object":'),
};
const TAIL = Buffer.from('}\n');

/** Frames of the latest events. Bounded, so that objects are not held twice for long. */
const shared = new BoundedCache<Entry, Partial<Record<FrameType, Buffer>>>({
  maxEntries: 1024,
  maxWeight: 8 * 1024 * 1024,
});

function sharedFrame(type: FrameType, entry: Entry): Buffer {
  let frames = shared.get(entry);
  if (frames === undefined) shared.set(entry, (frames = {}), entry.bytes.length);
  return (frames[type] ??= newFrame(type, entry.bytes));
}

function newFrame(type: FrameType, bytes: Buffer): Buffer {
  return Buffer.concat([HEADS[type], bytes, TAIL]);
}

const batches = new WeakMap<readonly StoreEvent[], Buffer>();

function sharedBatch(events: readonly StoreEvent[]): Buffer {
  let batch = batches.get(events);
  if (batch === undefined) {
    batch = Buffer.concat(
      events.flatMap(({ type, entry, previous }) => [HEADS[frameType(type, previous)], entry.bytes, TAIL]),
    );
    batches.set(events, batch);
  }
  return batch;
}

function frameType(type: StoreEvent['type'], previous: Entry | undefined): FrameType {
  if (type === 'delete') return 'DELETED';
  return previous === undefined ? 'ADDED' : 'MODIFIED';
}

export function jsonLine(value: unknown): Buffer {
  return Buffer.from(`${JSON.stringify(value)}\n`);
}

export interface FrameEncoder {
  initial(entry: Entry): Buffer;
  live(type: FrameType, entry: Entry): Buffer;
  /** Encodes the previous state of an object that left the selection, at the revision of that change. */
  leftSelection(event: StoreEvent & { previous: Entry }): Buffer;
  bookmark(revision: number, annotations?: Record<string, string>): Buffer;
  /** Encodes all events of a commit as one buffer, shared by all watchers of the same range in the stored form. */
  readonly batch: ((events: readonly StoreEvent[]) => Buffer) | undefined;
}

/**
 * Throws before the response begins if the representation is not supported. Its entries must be prepared
 * (prepareEntries).
 */
export function frameEncoder(call: Call): FrameEncoder {
  const { resource } = call.served;
  const isJson = call.representation.kind === 'json';
  const plain = isJson && resource.version === resource.storageVersion;
  const represent = representer(call);
  const made = (type: string, object: KubeObject) => jsonLine({ type, object: represent(object) });
  return {
    // Not shared: it is sent once and would only hold memory.
    initial: (entry) =>
      isJson ? newFrame('ADDED', servedBytes(entry, resource)) : made('ADDED', decodeEntry(entry, resource)),
    live(type, entry) {
      if (!isJson) return made(type, decodeEntry(entry, resource));
      const bytes = servedBytes(entry, resource);
      return bytes === entry.bytes ? sharedFrame(type, entry) : newFrame(type, bytes);
    },
    leftSelection({ previous, entry }) {
      const object = decodeEntry(previous, resource);
      object.metadata.resourceVersion = String(entry.revision);
      return made('DELETED', object);
    },
    batch: plain ? sharedBatch : undefined,
    bookmark: (revision, annotations) => made('BOOKMARK', bookmarkObject(resource, revision, annotations)),
  };
}

function bookmarkObject(resource: Resource, revision: number, annotations?: Record<string, string>): KubeObject {
  return {
    kind: resource.kind,
    apiVersion: apiVersionOf(resource),
    metadata: { resourceVersion: String(revision), ...(annotations ? { annotations } : {}) },
  };
}

function representer(call: Call): (object: KubeObject) => unknown {
  const { representation } = call;
  const { resource } = call.served;
  if (representation.kind === 'partial') return (object) => partialMetadata(object, representation.version);
  if (representation.kind !== 'table') return (object) => object;
  const options = tableOptions(call, { resourceVersion: '' });
  let first = true;
  return (object) => {
    const withColumns = first;
    first = false;
    const listMeta = { resourceVersion: object.metadata.resourceVersion ?? '' };
    return tableOf(resource, [object], { ...options, now: call.clock.now(), listMeta, withColumns });
  };
}

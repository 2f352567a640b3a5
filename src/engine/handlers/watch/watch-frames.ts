/**
 * Encodes watch events as bytes. The frame of a live event is encoded once for each form (JSON, metadata, Table) and
 * shared by all watchers.
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

/**
 * Frames of the latest events, by their form. Bounded, so that objects are not held for long: an event is sent to all
 * watchers within moments.
 */
const shared = new BoundedCache<Entry, Map<string, Buffer>>({ maxEntries: 1024, maxWeight: 8 * 1024 * 1024 });
/** Forms of one event that are held. */
const MAX_FORMS = 8;

function sharedFrame(entry: Entry, form: string, make: () => Buffer): Buffer {
  let forms = shared.get(entry);
  if (forms === undefined) shared.set(entry, (forms = new Map()), entry.bytes.length);
  let frame = forms.get(form);
  if (frame === undefined) {
    frame = make();
    if (forms.size < MAX_FORMS) forms.set(form, frame);
  }
  return frame;
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
  /** Estimates the time of a frame, in units of lib/fair-turns.ts. A live event is encoded once for all watchers. */
  units(entry: Entry, isLive: boolean): number;
  /** Encodes all events of a commit as one buffer, shared by all watchers of the same range in the stored form. */
  readonly batch: ((events: readonly StoreEvent[]) => Buffer) | undefined;
}

/** A frame that is copied or that another watcher has encoded. */
const COPIED_UNITS = 8;

/**
 * Throws before the response begins if the representation is not supported. Its entries must be prepared
 * (prepareEntries).
 */
export function frameEncoder(call: Call): FrameEncoder {
  const { resource } = call.served;
  const isJson = call.representation.kind === 'json';
  const isCopied = isJson && resource.stored?.convertsOnEachRead !== true;
  const plain = isJson && resource.version === resource.storageVersion;
  const nextForm = formsOf(call);
  const made = (type: string, object: KubeObject, { represent }: Form) => jsonLine({ type, object: represent(object) });
  const encode = (type: FrameType, entry: Entry, form: Form) =>
    isJson ? newFrame(type, servedBytes(entry, resource)) : made(type, decodeEntry(entry, resource), form);
  return {
    // Not shared: it is sent once and would only hold memory.
    initial: (entry) => encode('ADDED', entry, nextForm()),
    live(type, entry) {
      const form = nextForm();
      return sharedFrame(entry, `${type} ${form.name}`, () => encode(type, entry, form));
    },
    leftSelection({ previous, entry }) {
      const form = nextForm();
      return sharedFrame(entry, `LEFT ${form.name}`, () => {
        const object = decodeEntry(previous, resource);
        object.metadata.resourceVersion = String(entry.revision);
        return made('DELETED', object, form);
      });
    },
    units(entry, isLive) {
      const isCheap = isCopied || (isLive && (shared.get(entry)?.size ?? 0) > 0);
      return isCheap ? COPIED_UNITS + entry.bytes.length / 64 : entry.bytes.length;
    },
    batch: plain ? sharedBatch : undefined,
    bookmark: (revision, annotations) => made('BOOKMARK', bookmarkObject(resource, revision, annotations), nextForm()),
  };
}

function bookmarkObject(resource: Resource, revision: number, annotations?: Record<string, string>): KubeObject {
  return {
    kind: resource.kind,
    apiVersion: apiVersionOf(resource),
    metadata: { resourceVersion: String(revision), ...(annotations ? { annotations } : {}) },
  };
}

/** The form of one frame. Frames of an event whose forms have the same name are equal. */
interface Form {
  readonly name: string;
  represent(object: KubeObject): unknown;
}

/** Returns a function that returns the form of the next frame: the first Table of a watch has columns. */
function formsOf(call: Call): () => Form {
  const { representation } = call;
  const { resource } = call.served;
  const id = idOf(resource);
  if (representation.kind === 'partial') {
    const { version } = representation;
    const form: Form = { name: `${id} metadata ${version}`, represent: (object) => partialMetadata(object, version) };
    return () => form;
  }
  if (representation.kind !== 'table') {
    const form: Form = { name: id, represent: (object) => object };
    return () => form;
  }
  const options = tableOptions(call, { resourceVersion: '' });
  let withColumns = true;
  return () => {
    const [now, columns] = [call.clock.now(), withColumns];
    withColumns = false;
    const { version, includeObject } = options;
    return {
      // A Table contains ages, in seconds.
      name: `${id} table ${version} ${includeObject} ${columns} ${Math.floor(now / 1000)}`,
      represent(object) {
        const listMeta = { resourceVersion: object.metadata.resourceVersion ?? '' };
        return tableOf(resource, [object], { ...options, now, listMeta, withColumns: columns });
      },
    };
  };
}

const ids = new WeakMap<Resource, string>();
let lastId = 0;

/** Identifies a version of a kind, as it is defined now. */
function idOf(resource: Resource): string {
  let id = ids.get(resource);
  if (id === undefined) ids.set(resource, (id = String(++lastId)));
  return id;
}

/**
 * Whether the objects that a token is about still live. Asked with each request, so that what the answer needs is
 * taken from each stored version once.
 */
import { createHash } from 'node:crypto';
import { decodeStored } from '#engine/codec.ts';
import type { Entry, Store } from '#engine/store/store.ts';
import { isRecord } from '#kube/meta.ts';

export interface Life {
  readonly uid: string;
  /** When its deletion is or was due; a pod lives on until its grace period is over. */
  readonly endsAtMs: number | undefined;
}

const lives = new WeakMap<Entry, Life>();

/** undefined = there is no such object. */
export function lifeOf(store: Store, collection: string, id: string): Life | undefined {
  const entry = store.get(collection, id);
  if (entry === undefined) return undefined;
  let life = lives.get(entry);
  if (life === undefined) {
    const { uid = '', deletionTimestamp } = decodeStored(entry.bytes).metadata;
    life = { uid, endsAtMs: deletionTimestamp === undefined ? undefined : Date.parse(deletionTimestamp) };
    lives.set(entry, life);
  }
  return life;
}

/** Kubernetes allows for clocks that differ; here the one that issues is the one that checks. */
export function isOver({ endsAtMs }: Life, nowMs: number): boolean {
  return endsAtMs !== undefined && endsAtMs <= nowMs;
}

export interface HeldToken {
  /** tokenDigest() of the token in it; undefined while it holds none. */
  readonly digest: string | undefined;
  /** The controller that looks for tokens nobody uses has switched it off. */
  readonly invalidated: boolean;
}

const INVALID_SINCE = 'kubernetes.io/legacy-token-invalid-since';

const held = new WeakMap<Entry, HeldToken>();

/** What a Secret holds; undefined = there is no such Secret. */
export function heldToken(store: Store, id: string): HeldToken | undefined {
  const entry = store.get('secrets', id);
  if (entry === undefined) return undefined;
  let found = held.get(entry);
  if (found === undefined) {
    const { metadata, data } = decodeStored(entry.bytes);
    const token = isRecord(data) && Object.hasOwn(data, 'token') ? data['token'] : undefined;
    found = {
      digest: typeof token === 'string' ? tokenDigest(Buffer.from(token, 'base64').toString('utf8')) : undefined,
      invalidated: Boolean(metadata.labels?.[INVALID_SINCE]),
    };
    held.set(entry, found);
  }
  return found;
}

/** Tokens are kept and compared by this, never as text. */
export function tokenDigest(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}

/**
 * Looks up the objects that a token refers to. Runs for each request, so the result is computed once per stored
 * version.
 */
import { createHash } from 'node:crypto';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { Entry, Store } from '#engine/store/store.ts';
import { isRecord } from '#kube/meta.ts';

interface ObjectLifetime {
  readonly uid: string;
  /** Time of the deletion; a pod lives until the end of its grace period. */
  readonly endsAtMs: number | undefined;
}

const lives = new WeakMap<Entry, ObjectLifetime>();

/** Returns undefined if the object does not exist. */
export function lifetimeOf(store: Store, collection: string, id: string): ObjectLifetime | undefined {
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

/** Kubernetes allows for clock skew; here the same clock issues and checks. */
export function hasLifetimeEnded({ endsAtMs }: ObjectLifetime, nowMs: number): boolean {
  return endsAtMs !== undefined && endsAtMs <= nowMs;
}

interface SecretToken {
  /** tokenDigest() of the token; undefined if there is none. */
  readonly digest: string | undefined;
  /** True if the controller for unused tokens has invalidated it. */
  readonly invalidated: boolean;
}

const INVALID_SINCE = 'kubernetes.io/legacy-token-invalid-since';

const held = new WeakMap<Entry, SecretToken>();

/** Returns the token of a Secret, or undefined if the Secret does not exist. */
export function readSecretToken(store: Store, id: string): SecretToken | undefined {
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

/** Tokens are stored and compared by digest, never as text. */
export function tokenDigest(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}

/**
 * Lists all claims of a namespace live. Instances that start together share a list: it serves all callers that came
 * before it began, so that a fleet of VMs does not list the namespace once for each.
 */
import type { Reader } from '#client/client.ts';
import { listAll } from '#client/paged-list.ts';
import { PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { raceSignal } from '#lib/race-signal.ts';

type Claims = readonly Stored<PersistentVolumeClaim>[];

/** Resolves with claims that were listed after the call. */
type ListClaims = (namespace: string, options: { signal: AbortSignal }) => Promise<Claims>;

export function createClaimLister(reader: Pick<Reader, 'list'>): ListClaims {
  const running = new Map<string, Promise<Claims>>();
  const waiting = new Map<string, Promise<Claims>>();

  async function list(namespace: string): Promise<Claims> {
    return (await listAll(reader, PERSISTENT_VOLUME_CLAIMS, { namespace })).items;
  }

  function begin(namespace: string): Promise<Claims> {
    const begun = list(namespace).finally(() => running.delete(namespace));
    running.set(namespace, begun);
    return begun;
  }

  /** Starts a list after the running one, which may have begun before changes that the caller must see. */
  async function beginAfter(earlier: Promise<Claims>, namespace: string): Promise<Claims> {
    await earlier.catch(() => undefined);
    waiting.delete(namespace);
    return await begin(namespace);
  }

  function share(namespace: string): Promise<Claims> {
    const earlier = running.get(namespace);
    if (earlier === undefined) return begin(namespace);
    const next = waiting.get(namespace) ?? beginAfter(earlier, namespace);
    waiting.set(namespace, next);
    return next;
  }

  return async (namespace, { signal }) => await raceSignal(share(namespace), signal);
}

/** The claims of an instance, with their volumes. */
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

/** An existing claim that the instance names, and its volume. */
export interface ClaimView {
  readonly claim: Stored<PersistentVolumeClaim>;
  /** The volume of a bound claim; undefined if the cache does not show it yet. */
  readonly volume?: Stored<PersistentVolume>;
}

/** Returns the claims that exist, by name. */
export function claimViewsOf(
  names: Iterable<string>,
  namespace: string | undefined,
  caches: {
    readonly claims: Pick<Informer<PersistentVolumeClaim>, 'get'>;
    readonly volumes: Pick<Informer<PersistentVolume>, 'get'>;
  },
): Map<string, ClaimView> {
  const views = new Map<string, ClaimView>();
  for (const name of names) {
    const claim = caches.claims.get(keyOf({ namespace, name }));
    if (claim === undefined) continue;
    const { volumeName } = claim.spec;
    views.set(name, { claim, volume: volumeName ? caches.volumes.get(volumeName) : undefined });
  }
  return views;
}

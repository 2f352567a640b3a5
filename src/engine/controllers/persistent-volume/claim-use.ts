/**
 * Determines whether a pod uses a claim. Before a claim is deleted, the API is asked, because the cache may be behind: no
 * pod starts to use a claim under deletion (LiveUse).
 */
import type { Reader } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { type EnginePod, ENGINE_PODS } from '#engine/controllers/kinds.ts';
import { claimsOf } from '#engine/controllers/placement/pod-claims.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { LiveUse } from '#runtime/live-use.ts';

/** Pods by the keys of the claims that they use. */
const BY_CLAIM = 'claim';

export class ClaimUse {
  readonly #pods: Informer<EnginePod>;
  readonly #live: LiveUse<EnginePod>;

  constructor(pods: Informer<EnginePod>, reader: Pick<Reader, 'list'>) {
    this.#pods = pods;
    this.#live = new LiveUse(reader, ENGINE_PODS, (pod) => (hasNode(pod) ? claimKeysOf(pod) : []));
    pods.addIndex(BY_CLAIM, claimKeysOf);
  }

  async isUsed(claim: Stored<PersistentVolumeClaim>, options: { signal: AbortSignal }): Promise<boolean> {
    const key = objectKey(claim);
    if (this.#pods.byIndex(BY_CLAIM, key).some(hasNode)) return true;
    return await this.#live.isUsed(key, claim.metadata, options);
  }
}

export function claimKeysOf(pod: Stored<EnginePod>): string[] {
  const { namespace } = pod.metadata;
  return claimsOf(pod).map(({ name }) => keyOf({ namespace, name }));
}

/** A pod without a node does not use its claims: no node starts a pod whose claim is under deletion. */
function hasNode({ spec }: EnginePod): boolean {
  return Boolean(spec.nodeName);
}

/**
 * Determines whether a pod uses a claim. Before a claim is deleted, the API is asked, because the cache may be behind. One
 * list of pods serves all claims of the namespace that were deleted before the list, so that deleting many claims does not
 * list all pods for each of them. Such a list can only prove that a claim is unused: no pod starts to use a claim under
 * deletion, but the pods that used one when the list was made may have gone since.
 */
import type { Reader } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { listAll } from '#client/paged-list.ts';
import { compareRevisions } from '#client/revision.ts';
import { type EnginePod, ENGINE_PODS } from '#engine/controllers/kinds.ts';
import { claimsOf } from '#engine/controllers/placement/pod-claims.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

/** Pods by the keys of the claims that they use. */
const BY_CLAIM = 'claim';

interface UsedClaims {
  readonly namespace: string | undefined;
  readonly resourceVersion: string;
  /** The names of the claims. */
  readonly used: ReadonlySet<string>;
}

export class ClaimUse {
  readonly #pods: Informer<EnginePod>;
  readonly #reader: Pick<Reader, 'list'>;
  /** The newest list, of one namespace. */
  #latest: UsedClaims | undefined;

  constructor(pods: Informer<EnginePod>, reader: Pick<Reader, 'list'>) {
    this.#pods = pods;
    this.#reader = reader;
    pods.addIndex(BY_CLAIM, claimKeysOf);
  }

  async isUsed(claim: Stored<PersistentVolumeClaim>, options: { signal: AbortSignal }): Promise<boolean> {
    const { namespace, name, resourceVersion } = claim.metadata;
    if (this.#pods.byIndex(BY_CLAIM, objectKey(claim)).some(hasNode)) return true;
    const known = this.#latest;
    const provesUnused =
      known !== undefined &&
      known.namespace === namespace &&
      compareRevisions(known.resourceVersion, resourceVersion) >= 0 &&
      !known.used.has(name);
    return !provesUnused && (await this.#listUsed(namespace, options)).used.has(name);
  }

  async #listUsed(namespace: string | undefined, { signal }: { signal: AbortSignal }): Promise<UsedClaims> {
    const { items, resourceVersion } = await listAll(this.#reader, ENGINE_PODS, { namespace, signal });
    const used = new Set(items.filter(hasNode).flatMap((pod) => claimsOf(pod).map(({ name }) => name)));
    this.#latest = { namespace, resourceVersion, used };
    return this.#latest;
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

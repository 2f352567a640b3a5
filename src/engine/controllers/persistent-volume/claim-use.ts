/**
 * Whether a pod uses a claim. The cache may be behind; before a claim goes, the API is asked. One answer serves all
 * claims of its namespace whose deletion it has seen, so that deleting many claims does not list all pods for each.
 */
import type { Reader } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { listAll } from '#client/paged-list.ts';
import { compareRevisions } from '#client/revision.ts';
import { type Pod, PODS } from '#engine/controllers/kinds.ts';
import { claimsOf } from '#engine/controllers/scheduler/filters/volumes.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

/** Pods by the keys of the claims that they use. */
const BY_CLAIM = 'claim';

interface Answer {
  readonly namespace: string | undefined;
  readonly resourceVersion: string;
  /** Names of claims. */
  readonly used: ReadonlySet<string>;
}

export class ClaimUse {
  readonly #pods: Informer<Pod>;
  readonly #reader: Pick<Reader, 'list'>;
  /** The newest one, of whatever namespace. */
  #answer: Answer | undefined;

  constructor(pods: Informer<Pod>, reader: Pick<Reader, 'list'>) {
    this.#pods = pods;
    this.#reader = reader;
    pods.addIndex(BY_CLAIM, claimKeysOf);
  }

  async isUsed(claim: Stored<PersistentVolumeClaim>, options: { signal: AbortSignal }): Promise<boolean> {
    const { namespace, name, resourceVersion } = claim.metadata;
    if (this.#pods.byIndex(BY_CLAIM, objectKey(claim)).some(isPlaced)) return true;
    const known = this.#answer;
    const fresh =
      known !== undefined &&
      known.namespace === namespace &&
      compareRevisions(known.resourceVersion, resourceVersion) >= 0;
    const answer = fresh ? known : await this.#ask(namespace, options);
    return answer.used.has(name);
  }

  async #ask(namespace: string | undefined, { signal }: { signal: AbortSignal }): Promise<Answer> {
    const { items, resourceVersion } = await listAll(this.#reader, PODS, { namespace, signal });
    const used = new Set(items.filter(isPlaced).flatMap((pod) => claimsOf(pod).map(({ name }) => name)));
    const answer = { namespace, resourceVersion, used };
    this.#answer = answer;
    return answer;
  }
}

export function claimKeysOf(pod: Stored<Pod>): string[] {
  const { namespace } = pod.metadata;
  return claimsOf(pod).map(({ name }) => keyOf({ namespace, name }));
}

/** No node starts a pod whose claim is to go; so one that has no node yet uses nothing. */
function isPlaced({ spec }: Pod): boolean {
  return Boolean(spec.nodeName);
}

/** Finds the pod and the instance of one guest: in the caches, or through the API if they cannot be cached. */
import { readInstance } from '#node/guests/read-instance.ts';
import { DOMAIN_ANNOTATION } from '#api/names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Reader } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { DomainInfo } from '#node/hypervisor/hypervisor.ts';
import type { OwnWrites } from '#node/pods/own-writes.ts';
import { INSTANCES_BY_UID, isActivePod, PODS_BY_INSTANCE } from '#node/guests/guest-objects.ts';

interface ObserveParts {
  readonly client: Reader;
  readonly pods: Informer<Pod>;
  /** Contains only instances whose label names this node; others are read from the API. */
  readonly vmis: Informer<VirtualMachineInstance>;
  readonly ownPods: OwnWrites<Pod>;
  readonly ownVmis: OwnWrites<VirtualMachineInstance>;
  readonly signal: AbortSignal;
}

export interface ObservedObjects {
  readonly pod: Stored<Pod> | undefined;
  readonly vmi: Stored<VirtualMachineInstance> | undefined;
  /** Pods whose labels name the instance although they do not belong to it. */
  readonly mismatchedPods: readonly Stored<Pod>[];
}

export async function observeObjects(
  id: string,
  domain: DomainInfo | undefined,
  parts: ObserveParts,
): Promise<ObservedObjects> {
  const candidates = parts.pods.byIndex(PODS_BY_INSTANCE, id).map((pod) => parts.ownPods.newest(pod));
  if (candidates.length === 0) return { pod: undefined, vmi: undefined, mismatchedPods: [] };
  const vmi = await findInstance(id, candidates, parts);
  const matching = candidates.filter((candidate) => belongsToInstance(candidate, vmi, domain)).sort(byAge);
  const active = matching.find((candidate) => isActivePod(candidate, vmi));
  // Until the instance's status names its active pod, no matching pod is refused.
  const mismatchedPods = candidates.filter(
    (candidate) => candidate !== active && (active || !matching.includes(candidate)),
  );
  return { pod: active ?? matching[0], vmi, mismatchedPods };
}

/**
 * Reports whether a pod is in the namespace of the instance and names it in its annotation. The labels alone do not count:
 * every user who may create pods can set them.
 */
function belongsToInstance(
  pod: Stored<Pod>,
  vmi: Stored<VirtualMachineInstance> | undefined,
  domain: DomainInfo | undefined,
): boolean {
  const name = `${pod.metadata.namespace}/${pod.metadata.annotations?.[DOMAIN_ANNOTATION]}`;
  if (vmi !== undefined) return name === `${vmi.metadata.namespace}/${vmi.metadata.name}`;
  return domain === undefined || name === domain.name;
}

function byAge(a: Stored<Pod>, b: Stored<Pod>): number {
  const [left, right] = [a.metadata, b.metadata];
  if (left.creationTimestamp !== right.creationTimestamp) {
    return left.creationTimestamp < right.creationTimestamp ? -1 : 1;
  }
  return left.uid < right.uid ? -1 : 1;
}

async function findInstance(
  id: string,
  candidates: readonly Stored<Pod>[],
  { client, vmis, ownVmis, signal }: ObserveParts,
): Promise<Stored<VirtualMachineInstance> | undefined> {
  const cached = vmis.byIndex(INSTANCES_BY_UID, id)[0];
  if (cached !== undefined) return ownVmis.newest(cached);
  for (const { metadata } of candidates) {
    const name = { namespace: metadata.namespace, name: metadata.annotations?.[DOMAIN_ANNOTATION] ?? '' };
    const found = await readInstance(client, name, { signal });
    if (found?.metadata.uid === id) return found;
  }
  return undefined;
}

/** Gathers what there is to know of one guest: caches first, the API only where they cannot show it. */
import { DOMAIN_ANNOTATION } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Reader } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { Domain } from '#node/hypervisor/hypervisor.ts';
import type { OwnWrites } from '#node/pods/own-writes.ts';
import { podRole } from '#node/pods/pod-role.ts';
import { isActive } from '#node/domains/active-pod.ts';
import { getIfThere } from '#node/domains/start-domain.ts';

/** Launcher pods by the uid of their instance. */
export const BY_INSTANCE = 'instance';
export const BY_UID = 'uid';

export interface ObserveParts {
  readonly client: Reader;
  readonly pods: Informer<Pod>;
  /** Only those that say that they are on this node; others are asked for. */
  readonly vmis: Informer<VirtualMachineInstance>;
  readonly ownPods: OwnWrites<Pod>;
  readonly ownVmis: OwnWrites<VirtualMachineInstance>;
  readonly signal: AbortSignal;
}

export function instanceOf(pod: Pod): string[] {
  const role = podRole(pod);
  return role.is === 'launcher' ? [role.uid] : [];
}

export interface Seen {
  readonly pod: Stored<Pod> | undefined;
  readonly vmi: Stored<VirtualMachineInstance> | undefined;
  /** Pods that only say that they belong to the instance. */
  readonly strangers: readonly Stored<Pod>[];
}

export async function observeObjects(id: string, domain: Domain | undefined, parts: ObserveParts): Promise<Seen> {
  const candidates = parts.pods.byIndex(BY_INSTANCE, id).map((pod) => parts.ownPods.newest(pod));
  if (candidates.length === 0) return { pod: undefined, vmi: undefined, strangers: [] };
  const vmi = await instance(id, candidates, parts);
  const fitting = candidates.filter((candidate) => isOf(candidate, vmi, domain)).sort(byAge);
  const active = fitting.find((candidate) => isActive(candidate, vmi));
  // While nobody has said which one it is, none of those that might be it is turned away.
  const strangers = candidates.filter((candidate) => candidate !== active && (active || !fitting.includes(candidate)));
  return { pod: active ?? fitting[0], vmi, strangers };
}

/** Labels are anybody's to write: a pod counts only in the namespace and under the name of the instance itself. */
function isOf(pod: Stored<Pod>, vmi: Stored<VirtualMachineInstance> | undefined, domain: Domain | undefined): boolean {
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

async function instance(
  id: string,
  candidates: readonly Stored<Pod>[],
  { client, vmis, ownVmis, signal }: ObserveParts,
): Promise<Stored<VirtualMachineInstance> | undefined> {
  const cached = vmis.byIndex(BY_UID, id)[0];
  if (cached !== undefined) return ownVmis.newest(cached);
  for (const { metadata } of candidates) {
    const name = { namespace: metadata.namespace, name: metadata.annotations?.[DOMAIN_ANNOTATION] ?? '' };
    const found = await getIfThere(client, VIRTUAL_MACHINE_INSTANCES, name, signal);
    if (found?.metadata.uid === id) return found;
  }
  return undefined;
}

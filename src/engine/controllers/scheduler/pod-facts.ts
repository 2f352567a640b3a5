/** What scheduling knows of a pod, read out of it once. */
import type { Pod } from '#engine/controllers/kinds.ts';
import type { Labels, Toleration } from '#engine/controllers/scheduler/kinds.ts';
import {
  type PodTerm,
  preferredTerms,
  requiredTerms,
  type WeightedPodTerm,
} from '#engine/controllers/scheduler/pod-terms.ts';
import { type Amounts, podRequests, scoredRequests } from '#engine/controllers/scheduler/requests.ts';
import type { Stored } from '#kube/meta.ts';

export interface HostPort {
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
}

export interface PodFacts {
  readonly pod: Stored<Pod>;
  readonly namespace: string;
  readonly labels: Labels;
  readonly requests: Amounts;
  readonly scored: Amounts;
  readonly hostPorts: readonly HostPort[];
  readonly tolerations: readonly Toleration[];
  /** The uid of its controller: pods of one owner are spread. */
  readonly owner: string | undefined;
  readonly near: readonly PodTerm[];
  readonly apart: readonly PodTerm[];
  readonly ratherNear: readonly WeightedPodTerm[];
  readonly ratherApart: readonly WeightedPodTerm[];
  /** It will be gone soon: where it is does not count for spreading. */
  readonly leaving: boolean;
}

export function podFacts(pod: Stored<Pod>): PodFacts {
  const { metadata, spec } = pod;
  const { podAffinity, podAntiAffinity } = spec.affinity ?? {};
  return {
    pod,
    namespace: metadata.namespace ?? '',
    labels: metadata.labels,
    requests: podRequests(spec),
    scored: scoredRequests(spec),
    hostPorts: hostPortsOf(pod),
    tolerations: spec.tolerations ?? [],
    owner: metadata.ownerReferences?.find(({ controller }) => controller)?.uid,
    near: requiredTerms(pod, podAffinity),
    apart: requiredTerms(pod, podAntiAffinity),
    ratherNear: preferredTerms(pod, podAffinity),
    ratherApart: preferredTerms(pod, podAntiAffinity),
    leaving: metadata.deletionTimestamp !== undefined,
  };
}

function hostPortsOf({ spec }: Pod): HostPort[] {
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  return [...(spec.containers ?? []), ...sidecars].flatMap(({ ports = [] }) =>
    ports.flatMap(({ hostPort = 0, hostIP = '', protocol = 'TCP' }) =>
      hostPort > 0 ? [{ ip: hostIP || '0.0.0.0', protocol, port: hostPort }] : [],
    ),
  );
}

/** The properties of a pod that the scheduler uses, computed once per pod. */
import type { EnginePod } from '#engine/controllers/kinds.ts';
import type { OptionalLabels } from '#engine/controllers/placement/node-selector.ts';
import type { Toleration } from '#engine/controllers/placement/taints.ts';
import {
  type PodTerm,
  preferredTerms,
  requiredTerms,
  type WeightedPodTerm,
} from '#engine/controllers/scheduler/pod-terms.ts';
import { type ResourceAmounts, podRequests, scoredRequests } from '#engine/controllers/scheduler/requests.ts';
import type { Stored } from '#kube/meta.ts';

export interface HostPort {
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
}

export interface PodFacts {
  readonly pod: Stored<EnginePod>;
  readonly namespace: string;
  readonly labels: OptionalLabels;
  readonly requests: ResourceAmounts;
  readonly scored: ResourceAmounts;
  readonly hostPorts: readonly HostPort[];
  readonly tolerations: readonly Toleration[];
  /** The uid of its controller. Pods of one owner are spread over nodes. */
  readonly owner: string | undefined;
  readonly requiredAffinity: readonly PodTerm[];
  readonly requiredAntiAffinity: readonly PodTerm[];
  readonly preferredAffinity: readonly WeightedPodTerm[];
  readonly preferredAntiAffinity: readonly WeightedPodTerm[];
  /** True for a pod under deletion. It does not count for spreading. */
  readonly isDeleting: boolean;
}

export function readPodFacts(pod: Stored<EnginePod>): PodFacts {
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
    requiredAffinity: requiredTerms(pod, podAffinity),
    requiredAntiAffinity: requiredTerms(pod, podAntiAffinity),
    preferredAffinity: preferredTerms(pod, podAffinity),
    preferredAntiAffinity: preferredTerms(pod, podAntiAffinity),
    isDeleting: metadata.deletionTimestamp !== undefined,
  };
}

function hostPortsOf({ spec }: EnginePod): HostPort[] {
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  return [...(spec.containers ?? []), ...sidecars].flatMap(({ ports = [] }) =>
    ports.flatMap(({ hostPort = 0, hostIP = '', protocol = 'TCP' }) =>
      hostPort > 0 ? [{ ip: hostIP || '0.0.0.0', protocol, port: hostPort }] : [],
    ),
  );
}

/**
 * Filters nodes by the pod's claims. Each claim must exist, must be bound if its class binds immediately, and its volume
 * must be reachable from the node. Claims of classes that wait for the first consumer are annotated with the chosen node
 * (pendingClaims); the pod waits until they are bound.
 */
import { SELECTED_NODE } from '#kube/volume-keys.ts';
import type { ClusterView, NodeFilter, NoNodeFits } from '#engine/controllers/scheduler/filters/node-filter.ts';
import { unresolvableRefusal } from '#engine/controllers/scheduler/filters/node-filter.ts';
import { type EngineNode, type EnginePod } from '#engine/controllers/kinds.ts';
import type { SchedulerClaim, SchedulerStorageClass } from '#engine/controllers/scheduler/kinds.ts';
import { labelOf, compileNodeSelector } from '#engine/controllers/placement/node-selector.ts';
import { classNameOf } from '#kube/storage-class-name.ts';
import { claimsOf } from '#engine/controllers/placement/pod-claims.ts';
import type { NodeView } from '#engine/controllers/scheduler/node-usage.ts';

const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed';

const VOLUME_NOT_FOUND = unresolvableRefusal(
  'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)',
);
const NODE_AFFINITY_CONFLICT = unresolvableRefusal('node(s) had volume node affinity conflict');
const NO_VOLUME_TO_BIND = unresolvableRefusal("node(s) didn't find available persistent volumes to bind");

export const volumeFilter: NodeFilter = ({ pod, namespace }, cluster) => {
  const wanted = claimsOf(pod);
  if (wanted.length === 0) return undefined;
  const claims: SchedulerClaim[] = [];
  for (const { name, ephemeral } of wanted) {
    const claim = cluster.claim(`${namespace}/${name}`);
    const refusal = refuseClaim(pod, name, claim, ephemeral);
    if (refusal !== undefined) return refusal;
    claims.push(claim!);
  }
  if (claims.some((claim) => !isClaimBound(claim) && !waitsForConsumer(claim, cluster))) {
    return { noNodeReason: 'pod has unbound immediate PersistentVolumeClaims' };
  }
  const checks = claims.map((claim) =>
    isClaimBound(claim) ? checkBoundClaim(claim, cluster) : checkUnboundClaim(claim, cluster),
  );
  return (view) => {
    for (const check of checks) {
      const refusal = check(view);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  };
};

function refuseClaim(
  pod: EnginePod,
  name: string,
  claim: SchedulerClaim | undefined,
  ephemeral: boolean,
): NoNodeFits | undefined {
  if (claim === undefined) {
    const awaited = `waiting for ephemeral volume controller to create the persistentvolumeclaim ${JSON.stringify(name)}`;
    return { noNodeReason: ephemeral ? awaited : `persistentvolumeclaim ${JSON.stringify(name)} not found` };
  }
  const { metadata, spec, status } = claim;
  const quoted = JSON.stringify(metadata.name);
  if (status?.phase === 'Lost') {
    const volume = JSON.stringify(spec?.volumeName ?? '');
    return { noNodeReason: `persistentvolumeclaim ${quoted} bound to non-existent persistentvolume ${volume}` };
  }
  if (metadata.deletionTimestamp !== undefined)
    return { noNodeReason: `persistentvolumeclaim ${quoted} is being deleted` };
  const owned = metadata.ownerReferences?.some(({ uid, controller }) => controller && uid === pod.metadata.uid);
  if (ephemeral && owned !== true) {
    const { namespace, name: podName } = pod.metadata;
    const notCreated = `PVC ${metadata.namespace}/${metadata.name} was not created for pod ${namespace}/${podName}`;
    return { noNodeReason: `${notCreated} (pod is not owner)` };
  }
  return undefined;
}

function isClaimBound({ metadata, spec, status }: SchedulerClaim): boolean {
  if (!spec?.volumeName) return false;
  return status?.phase === 'Bound' || labelOf(metadata.annotations, BIND_COMPLETED) !== undefined;
}

function classOf(claim: SchedulerClaim, cluster: ClusterView): SchedulerStorageClass | undefined {
  const name = classNameOf(claim);
  return name === '' ? undefined : cluster.storageClass(name);
}

/** Reports whether a claim waits for the node of its first consumer. A claim that names a volume does not. */
function waitsForConsumer(claim: SchedulerClaim, cluster: ClusterView): boolean {
  return !claim.spec?.volumeName && classOf(claim, cluster)?.volumeBindingMode === 'WaitForFirstConsumer';
}

function checkBoundClaim({ spec }: SchedulerClaim, cluster: ClusterView) {
  const volume = cluster.volume(spec?.volumeName ?? '');
  if (volume === undefined) return () => VOLUME_NOT_FOUND;
  const required = volume.spec?.nodeAffinity?.required;
  if (required === undefined) return () => undefined;
  const matches = compileNodeSelector(required);
  return ({ node }: NodeView) => (matches(node) ? undefined : NODE_AFFINITY_CONFLICT);
}

/** Once a node is selected, only that node fits, because the provisioner may already be creating the volume there. */
function checkUnboundClaim(claim: SchedulerClaim, cluster: ClusterView) {
  const selected = labelOf(claim.metadata.annotations, SELECTED_NODE);
  const topologies = classOf(claim, cluster)?.allowedTopologies ?? [];
  return ({ name, node }: NodeView) => {
    if (selected !== undefined) return selected === name ? undefined : NO_VOLUME_TO_BIND;
    return topologies.length === 0 || topologies.some((term) => matchesTopology(term, node))
      ? undefined
      : NO_VOLUME_TO_BIND;
  };
}

type Topology = NonNullable<SchedulerStorageClass['allowedTopologies']>[number];

function matchesTopology({ matchLabelExpressions = [] }: Topology, { metadata }: EngineNode): boolean {
  return matchLabelExpressions.every(({ key, values }) => values.includes(labelOf(metadata.labels, key) ?? ''));
}

/** Returns the claims of the pod that are not bound yet. The pod is bound to its node after they are. */
export function pendingClaims(pod: EnginePod, cluster: ClusterView): SchedulerClaim[] {
  return claimsOf(pod).flatMap(({ name }) => {
    const claim = cluster.claim(`${pod.metadata.namespace}/${name}`);
    return claim === undefined || isClaimBound(claim) ? [] : [claim];
  });
}

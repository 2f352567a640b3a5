/**
 * The pod's claims: they must be there, bound where their class binds at once, and their volumes reachable from the node.
 * Claims of classes that wait for their first consumer are told which node it is (pendingClaims), and awaited.
 */
import { SELECTED_NODE } from '#kube/volume-keys.ts';
import type { ClusterView, Filter, Nowhere } from '#engine/controllers/scheduler/filters/filter.ts';
import { unresolvable } from '#engine/controllers/scheduler/filters/filter.ts';
import { type Node, type Pod } from '#engine/controllers/kinds.ts';
import { type Claim, labelOf, type StorageClass } from '#engine/controllers/scheduler/kinds.ts';
import { compileNodeSelector } from '#engine/controllers/scheduler/node-selector.ts';
import type { NodeView } from '#engine/controllers/scheduler/node-room.ts';

const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';
const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed';

const NOT_FOUND = unresolvable('node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)');
const OUT_OF_REACH = unresolvable('node(s) had volume node affinity conflict');
const NO_VOLUME = unresolvable("node(s) didn't find available persistent volumes to bind");

interface WantedClaim {
  readonly name: string;
  /** Made for this pod, by the ephemeral volume controller. */
  readonly ephemeral: boolean;
}

export function claimsOf({ metadata, spec }: Pod): WantedClaim[] {
  return (spec.volumes ?? []).flatMap((volume): WantedClaim[] => {
    if (volume.persistentVolumeClaim !== undefined) {
      return [{ name: volume.persistentVolumeClaim.claimName, ephemeral: false }];
    }
    return volume.ephemeral === undefined ? [] : [{ name: `${metadata.name}-${volume.name}`, ephemeral: true }];
  });
}

export const volumeFilter: Filter = ({ pod, namespace }, cluster) => {
  const wanted = claimsOf(pod);
  if (wanted.length === 0) return undefined;
  const claims: Claim[] = [];
  for (const { name, ephemeral } of wanted) {
    const claim = cluster.claim(`${namespace}/${name}`);
    const fault = claimFault(pod, name, claim, ephemeral);
    if (fault !== undefined) return fault;
    claims.push(claim!);
  }
  if (claims.some((claim) => !isBound(claim) && !waitsForConsumer(claim, cluster))) {
    return { nowhere: 'pod has unbound immediate PersistentVolumeClaims' };
  }
  const checks = claims.map((claim) => (isBound(claim) ? reachable(claim, cluster) : bindable(claim, cluster)));
  return (view) => {
    for (const check of checks) {
      const refusal = check(view);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  };
};

function claimFault(pod: Pod, name: string, claim: Claim | undefined, ephemeral: boolean): Nowhere | undefined {
  if (claim === undefined) {
    const awaited = `waiting for ephemeral volume controller to create the persistentvolumeclaim ${JSON.stringify(name)}`;
    return { nowhere: ephemeral ? awaited : `persistentvolumeclaim ${JSON.stringify(name)} not found` };
  }
  const { metadata, spec, status } = claim;
  const quoted = JSON.stringify(metadata.name);
  if (status?.phase === 'Lost') {
    const volume = JSON.stringify(spec?.volumeName ?? '');
    return { nowhere: `persistentvolumeclaim ${quoted} bound to non-existent persistentvolume ${volume}` };
  }
  if (metadata.deletionTimestamp !== undefined) return { nowhere: `persistentvolumeclaim ${quoted} is being deleted` };
  const owned = metadata.ownerReferences?.some(({ uid, controller }) => controller && uid === pod.metadata.uid);
  if (ephemeral && owned !== true) {
    const { namespace, name: podName } = pod.metadata;
    const whose = `PVC ${metadata.namespace}/${metadata.name} was not created for pod ${namespace}/${podName}`;
    return { nowhere: `${whose} (pod is not owner)` };
  }
  return undefined;
}

export function isBound({ metadata, spec, status }: Claim): boolean {
  if (!spec?.volumeName) return false;
  return status?.phase === 'Bound' || labelOf(metadata.annotations, BIND_COMPLETED) !== undefined;
}

function classOf({ metadata, spec }: Claim, cluster: ClusterView): StorageClass | undefined {
  const name = labelOf(metadata.annotations, CLASS_ANNOTATION) ?? spec?.storageClassName ?? '';
  return name === '' ? undefined : cluster.storageClass(name);
}

/** Whoever named a volume does not wait for a node. */
function waitsForConsumer(claim: Claim, cluster: ClusterView): boolean {
  return !claim.spec?.volumeName && classOf(claim, cluster)?.volumeBindingMode === 'WaitForFirstConsumer';
}

function reachable({ spec }: Claim, cluster: ClusterView) {
  const volume = cluster.volume(spec?.volumeName ?? '');
  if (volume === undefined) return () => NOT_FOUND;
  const required = volume.spec?.nodeAffinity?.required;
  if (required === undefined) return () => undefined;
  const matches = compileNodeSelector(required);
  return ({ node }: NodeView) => (matches(node) ? undefined : OUT_OF_REACH);
}

/** Once a node was selected, whoever makes the volume may be at it: no other node will do. */
function bindable(claim: Claim, cluster: ClusterView) {
  const selected = labelOf(claim.metadata.annotations, SELECTED_NODE);
  const topologies = classOf(claim, cluster)?.allowedTopologies ?? [];
  return ({ name, node }: NodeView) => {
    if (selected !== undefined) return selected === name ? undefined : NO_VOLUME;
    return topologies.length === 0 || topologies.some((term) => inTopology(term, node)) ? undefined : NO_VOLUME;
  };
}

type Topology = NonNullable<StorageClass['allowedTopologies']>[number];

function inTopology({ matchLabelExpressions = [] }: Topology, { metadata }: Node): boolean {
  return matchLabelExpressions.every(({ key, values }) => values.includes(labelOf(metadata.labels, key) ?? ''));
}

/** Claims that wait for the pod's node: before they are bound the pod cannot start. */
export function pendingClaims(pod: Pod, cluster: ClusterView): Claim[] {
  return claimsOf(pod).flatMap(({ name }) => {
    const claim = cluster.claim(`${pod.metadata.namespace}/${name}`);
    return claim === undefined || isBound(claim) ? [] : [claim];
  });
}

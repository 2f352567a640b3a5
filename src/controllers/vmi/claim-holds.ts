/**
 * Claims whose disk is plugged into a guest that runs. What pods do for the claims that they name is done for these here,
 * because a pod does not change, and so does not name them:
 *
 *   - a finalizer of our own holds the claim from when the instance names it until the guest has let go, or is gone;
 *   - a claim that waits for its first consumer is told on which node that is.
 */
import { isMigrating } from '#api/migration-state.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { movableClaims, usesLate } from '#controllers/vmi/late-volumes.ts';
import { launcherIndexKeys, launcherNodes, launcherOf, LAUNCHERS_BY_NODE } from '#controllers/vmi/launcher-of.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim, type Pod, PODS } from '#kube/core-kinds.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { type ControllerDefinition, defineController, presence, source } from '#runtime/controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { SELECTED_NODE } from '#kube/volume-keys.ts';
import { releaseFrom } from '#runtime/finalizer.ts';
import { NOTHING, type Plan } from '#runtime/plan.ts';

export const HOTPLUGGED_FINALIZER = 'selfsame.io/hotplugged';
const CONCURRENCY = 5;
/** Instances by the keys of the claims that come and go with them. */
const BY_MOVABLE_CLAIM = 'vmi-of-movable-claim';
/** Instances that have such claims, by their uid. */
const MOVABLE_BY_UID = 'vmi-with-movable-claims';

export interface ClaimWorld {
  readonly claim: Stored<PersistentVolumeClaim>;
  /** Instances that may have it, with their pods. */
  readonly users: readonly ClaimUser[];
}

export interface ClaimUser extends Pick<VmiWorld, 'vmi' | 'pod'> {
  /** Whether the node of its pod is there. */
  readonly nodeExists: boolean;
}

/** Pure. */
export function decideClaimHold({ claim, users }: ClaimWorld): Plan {
  const { name, namespace, uid, resourceVersion, finalizers = [] } = claim.metadata;
  const type = PERSISTENT_VOLUME_CLAIMS;
  const used = users.filter((user) => usesLate(user, name));
  if (used.length === 0) {
    const change = releaseFrom(HOTPLUGGED_FINALIZER, type, claim, 'no guest has it plugged in any more');
    return change === undefined ? NOTHING : { changes: [change] };
  }
  const selected = selectedNode(claim, used);
  // Too late to hold it: the API takes no more finalizers.
  if (isDeleting(claim) || (isHeld(claim) && selected === undefined)) return NOTHING;
  const metadata = {
    resourceVersion,
    ...(isHeld(claim) ? {} : { finalizers: [...finalizers, HOTPLUGGED_FINALIZER] }),
    ...(selected === undefined ? {} : { annotations: { [SELECTED_NODE]: selected } }),
  };
  const patch = { type: 'merge', body: { metadata } } as const;
  const why = 'it is plugged into a guest that runs';
  return { changes: [{ do: 'patch', type, name: { name, namespace }, uid, patch, why }] };
}

/** As the scheduler does it for the claims of a pod; undefined where it has been said, or there is nothing to wait for. */
function selectedNode({ metadata, spec }: ClaimWorld['claim'], users: readonly ClaimUser[]): string | undefined {
  if (spec.volumeName || metadata.annotations?.[SELECTED_NODE] !== undefined) return undefined;
  // A guest that moves may not be there any more when the volume is.
  const isSettled = ({ vmi, nodeExists }: ClaimUser) => nodeExists && !isMigrating(vmi.status?.migrationState);
  return users.find(isSettled)?.pod?.spec.nodeName;
}

export function claimHolds({ informer }: ControllerParts): ControllerDefinition<ClaimWorld> {
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const pods = informer(PODS);
  const nodes = informer(NODES);
  vmis.addIndex(BY_MOVABLE_CLAIM, movableClaimKeys);
  vmis.addIndex(MOVABLE_BY_UID, (vmi) => (movableClaims(vmi).length > 0 ? [vmi.metadata.uid] : []));
  pods.addIndex(LAUNCHERS_BY_NODE, launcherNodes);
  const ofPod = (pod: Stored<Pod>) =>
    launcherIndexKeys(pod).flatMap((uid) => vmis.byIndex(MOVABLE_BY_UID, uid).flatMap(movableClaimKeys));
  const usersOf = (key: string) => vmis.byIndex(BY_MOVABLE_CLAIM, key);

  return defineController<ClaimWorld>({
    name: 'claim-hold-controller',
    type: PERSISTENT_VOLUME_CLAIMS,
    concurrency: CONCURRENCY,
    sources: [
      // Most claims never come and go.
      source(claims, (claim) => (isHeld(claim) || usersOf(objectKey(claim)).length > 0 ? [objectKey(claim)] : [])),
      source(vmis, movableClaimKeys),
      source(pods, ofPod),
      source(nodes, ({ metadata }) => pods.byIndex(LAUNCHERS_BY_NODE, metadata.name).flatMap(ofPod), {
        part: presence,
      }),
    ],
    observe(key) {
      const claim = claims.get(key);
      if (claim === undefined) return undefined;
      const users = usersOf(key).map((vmi) => {
        const pod = launcherOf(pods, vmi);
        return { vmi, pod, nodeExists: nodes.get(pod?.spec.nodeName ?? '') !== undefined };
      });
      return { claim, users };
    },
    decide: decideClaimHold,
    subject: ({ claim }) => claim,
  });
}

function isHeld({ metadata }: Stored<PersistentVolumeClaim>): boolean {
  return metadata.finalizers?.includes(HOTPLUGGED_FINALIZER) === true;
}

function movableClaimKeys(vmi: Stored<VirtualMachineInstance>): string[] {
  const { namespace } = vmi.metadata;
  return movableClaims(vmi).map((name) => keyOf({ namespace, name }));
}

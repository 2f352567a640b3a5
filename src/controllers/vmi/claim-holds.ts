/**
 * Holds claims whose disk is hotplugged. Kubernetes protects and binds the claims in the spec of a pod; a pod cannot
 * change, so this controller does the same for hotplugged claims:
 *
 *   - a finalizer holds the claim from the moment the instance names it until the guest has released it or is gone;
 *   - a claim that waits for its first consumer gets the annotation with the node of the guest.
 */
import { isMigrating } from '#api/migration/migration-state.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { compareRevisions } from '#client/revision.ts';
import { hotpluggableClaimNames, usesHotplugged } from '#controllers/vmi/hotplugged-volumes.ts';
import {
  launcherIndexKeys,
  launcherNodes,
  launcherOf,
  LAUNCHERS_BY_NODE,
} from '#controllers/shared/launcher/find-launchers.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim, type Pod, PODS } from '#kube/core-kinds.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { type ControllerDefinition, defineController, presenceOnly, source } from '#runtime/controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { SELECTED_NODE } from '#kube/volume-keys.ts';
import { releaseFinalizer } from '#runtime/finalizer.ts';
import { LiveUse, USE_RECHECK_MS } from '#runtime/live-use.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';

export const HOTPLUGGED_FINALIZER = 'selfsame.io/hotplugged';
const CONCURRENCY = 5;
/** The name of an index: instances by the keys of their hotpluggable claims. */
const BY_HOTPLUGGABLE_CLAIM = 'vmi-of-movable-claim';
/** The name of an index: instances with hotpluggable claims, by uid. */
const WITH_HOTPLUGGABLE_CLAIMS = 'vmi-with-movable-claims';

interface ClaimHoldWorld {
  readonly claim: Stored<PersistentVolumeClaim>;
  /** Instances that may use the claim, with their pods. */
  readonly users: readonly ClaimUser[];
  /** True if the server has an instance that names the claim and that the cache does not show yet. */
  readonly hasUnseenUser?: boolean;
}

export interface ClaimUser extends Pick<VmiWorld, 'vmi' | 'pod'> {
  /** True if the node of the pod exists. */
  readonly nodeExists: boolean;
}

/** Pure. */
export function decideClaimHold({ claim, users, hasUnseenUser }: ClaimHoldWorld): Plan {
  const { name, namespace, uid, resourceVersion, finalizers = [] } = claim.metadata;
  const type = PERSISTENT_VOLUME_CLAIMS;
  const used = users.filter((user) => usesHotplugged(user, name));
  if (hasUnseenUser) return { changes: [], requeueAfterMs: USE_RECHECK_MS };
  if (used.length === 0) {
    const change = releaseFinalizer(HOTPLUGGED_FINALIZER, type, claim, 'no guest uses the claim any more');
    return change === undefined ? EMPTY_PLAN : { changes: [change] };
  }
  const selected = selectedNode(claim, used);
  // The API server refuses new finalizers on a claim that is being deleted.
  if (isDeleting(claim) || (hasFinalizer(claim) && selected === undefined)) return EMPTY_PLAN;
  const metadata = {
    resourceVersion,
    ...(hasFinalizer(claim) ? {} : { finalizers: [...finalizers, HOTPLUGGED_FINALIZER] }),
    ...(selected === undefined ? {} : { annotations: { [SELECTED_NODE]: selected } }),
  };
  const patch = { type: 'merge', body: { metadata } } as const;
  const why = 'the claim is plugged into a running guest';
  return { changes: [{ do: 'patch', type, name: { name, namespace }, uid, patch, why }] };
}

/** Returns the node for a claim that waits for its first consumer, as the scheduler does for the claims of a pod. */
function selectedNode({ metadata, spec }: ClaimHoldWorld['claim'], users: readonly ClaimUser[]): string | undefined {
  if (spec.volumeName || metadata.annotations?.[SELECTED_NODE] !== undefined) return undefined;
  // A migrating guest may have left the node before the volume is provisioned there.
  const isSettled = ({ vmi, nodeExists }: ClaimUser) => nodeExists && !isMigrating(vmi.status?.migrationState);
  return users.find(isSettled)?.pod?.spec.nodeName;
}

export function defineClaimHolds({ client, informer }: ControllerParts): ControllerDefinition<ClaimHoldWorld> {
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const pods = informer(PODS);
  const nodes = informer(NODES);
  vmis.addIndex(BY_HOTPLUGGABLE_CLAIM, hotpluggableClaimKeys);
  vmis.addIndex(WITH_HOTPLUGGABLE_CLAIMS, (vmi) => (hotpluggableClaimNames(vmi).length > 0 ? [vmi.metadata.uid] : []));
  pods.addIndex(LAUNCHERS_BY_NODE, launcherNodes);
  const claimKeysOfPod = (pod: Stored<Pod>) =>
    launcherIndexKeys(pod).flatMap((uid) => vmis.byIndex(WITH_HOTPLUGGABLE_CLAIMS, uid).flatMap(hotpluggableClaimKeys));
  const usersOf = (key: string) => vmis.byIndex(BY_HOTPLUGGABLE_CLAIM, key);
  const unseen = new LiveUse(client, VIRTUAL_MACHINE_INSTANCES, (vmi) =>
    isSeen(vmi) ? [] : hotpluggableClaimKeys(vmi),
  );

  function isSeen(live: Stored<VirtualMachineInstance>): boolean {
    const { uid, resourceVersion } = vmis.get(objectKey(live))?.metadata ?? {};
    return uid === live.metadata.uid && compareRevisions(resourceVersion ?? '0', live.metadata.resourceVersion) >= 0;
  }

  /** Reads live before a claim under deletion is released: without the finalizer it could be removed at once. */
  async function hasUnseenUser(claim: Stored<PersistentVolumeClaim>, options: { signal: AbortSignal }) {
    const mayBeReleased = isDeleting(claim) && hasFinalizer(claim);
    return mayBeReleased && (await unseen.isUsed(objectKey(claim), claim.metadata, options));
  }

  return defineController<ClaimHoldWorld>({
    name: 'claim-hold-controller',
    type: PERSISTENT_VOLUME_CLAIMS,
    concurrency: CONCURRENCY,
    sources: [
      // Most claims are never hotplugged.
      source(claims, (claim) =>
        hasFinalizer(claim) || usersOf(objectKey(claim)).length > 0 ? [objectKey(claim)] : [],
      ),
      source(vmis, hotpluggableClaimKeys),
      source(pods, claimKeysOfPod),
      source(nodes, ({ metadata }) => pods.byIndex(LAUNCHERS_BY_NODE, metadata.name).flatMap(claimKeysOfPod), {
        part: presenceOnly,
      }),
    ],
    async observe(key, options) {
      const claim = claims.get(key);
      if (claim === undefined) return undefined;
      const isUnseen = await hasUnseenUser(claim, options);
      const users = usersOf(key).map((vmi) => {
        const pod = launcherOf(pods, vmi);
        return { vmi, pod, nodeExists: nodes.get(pod?.spec.nodeName ?? '') !== undefined };
      });
      return { claim, users, hasUnseenUser: isUnseen };
    },
    decide: decideClaimHold,
    subject: ({ claim }) => claim,
  });
}

function hasFinalizer({ metadata }: Stored<PersistentVolumeClaim>): boolean {
  return metadata.finalizers?.includes(HOTPLUGGED_FINALIZER) === true;
}

function hotpluggableClaimKeys(vmi: Stored<VirtualMachineInstance>): string[] {
  const { namespace } = vmi.metadata;
  return hotpluggableClaimNames(vmi).map((name) => keyOf({ namespace, name }));
}

/**
 * VirtualMachineInstances: observes an instance, its launcher pods, the claims that it names and the one that holds its
 * persistent state (observe-state.ts), and decides (decide-vmi.ts). It makes and deletes the pod, makes the claim of the
 * state and tells the phase; the node agent runs the guest and reports in the pod's status and in its own fields of the
 * instance's. Claims that the pod cannot hold are held here (claim-holds.ts). Pods to which a guest moves are made by
 * controllers/migration, who says in the instance's status where the guest is.
 */
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { claimKeysOfVolume } from '#controllers/claim-keys.ts';
import type { PlaneController } from '#controllers/plane-controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { isFinal } from '#controllers/vmi/phase.ts';
import { concludeVmi, decideVmi } from '#controllers/vmi/decide-vmi.ts';
import { EndedPods } from '#controllers/vmi/ended-pods.ts';
import { claimHolds } from '#controllers/vmi/claim-holds.ts';
import { stateObserver } from '#controllers/vmi/observe-state.ts';
import { movableClaims } from '#controllers/vmi/late-volumes.ts';
import { activeMigrations } from '#controllers/vmi/active-migrations.ts';
import {
  currentLauncherName,
  isLauncherOf,
  LAUNCHERS_BY_INSTANCE,
  LAUNCHERS_BY_NODE,
  launcherIndexKeys,
  launcherNodes,
  launchersOf,
} from '#controllers/vmi/launcher-of.ts';
import { claimNamesOf } from '#api/claim-names.ts';
import { type ClaimView, type VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { findCondition } from '#kube/conditions.ts';
import { NODES, type Node, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, type Pod, PODS } from '#kube/core-kinds.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import { liveLook } from '#runtime/live-look.ts';
import {
  type ControllerDefinition,
  controllerKeys,
  defineController,
  source,
  startController,
} from '#runtime/controller.ts';

type Vmi = Stored<VirtualMachineInstance>;

const CONCURRENCY = 20;
/** Instances by the key of each claim that they name. */
const BY_CLAIM = 'vmi-of-claim';
const BY_UID = 'vmi-by-uid';

export const vmiController: PlaneController = {
  account: 'vmi-controller',
  eventSource: 'virtualmachineinstance-controller',
  start: (parts) => [startController(definition(parts), parts), startController(claimHolds(parts), parts)],
};

function definition(parts: ControllerParts): ControllerDefinition<VmiWorld> {
  const { client, informer, clock, signal } = parts;
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const pods = informer(PODS);
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informer(PERSISTENT_VOLUMES);
  const nodes = informer(NODES);
  vmis.addIndex(BY_CLAIM, claimKeysOf);
  vmis.addIndex(BY_UID, ({ metadata }) => [metadata.uid]);
  const ended = new EndedPods(pods, { signal });
  const states = stateObserver(parts);
  const migrations = activeMigrations(parts);
  pods.addIndex(LAUNCHERS_BY_INSTANCE, launcherIndexKeys);
  pods.addIndex(LAUNCHERS_BY_NODE, launcherNodes);
  const look = liveLook(client);
  /** Also of a pod whose owner somebody took away. */
  const ofPod = (pod: Stored<Pod>) => [
    ...controllerKeys(VIRTUAL_MACHINE_INSTANCES)(pod),
    ...launcherIndexKeys(pod).flatMap((uid) => vmis.byIndex(BY_UID, uid).map(objectKey)),
  ];
  const usersOf = (key: string): string[] => vmis.byIndex(BY_CLAIM, key).map(objectKey);

  function claimsOf(vmi: Vmi): Map<string, ClaimView> {
    const views = new Map<string, ClaimView>();
    for (const name of claimNames(vmi)) {
      const claim = claims.get(keyOf({ namespace: vmi.metadata.namespace, name }));
      if (claim === undefined) continue;
      const { volumeName } = claim.spec;
      views.set(name, { claim, volume: volumeName ? volumes.get(volumeName) : undefined });
    }
    return views;
  }

  /** A pod that somebody else made may be missing only because the cache lags behind. */
  async function missingPod(vmi: Vmi, options: { signal: AbortSignal }): Promise<Stored<Pod> | undefined> {
    if (vmi.status?.migrationState === undefined || isFinal(vmi.status.phase) || isDeleting(vmi)) return undefined;
    const { namespace } = vmi.metadata;
    const pod = await look(PODS, { namespace, name: currentLauncherName(vmi) }, options);
    return pod !== undefined && isLauncherOf(pod, vmi) ? pod : undefined;
  }

  return defineController<VmiWorld>({
    name: 'vmi-controller',
    type: VIRTUAL_MACHINE_INSTANCES,
    concurrency: CONCURRENCY,
    sources: [
      source(vmis),
      source(pods, ofPod),
      source(claims, (claim) => usersOf(objectKey(claim))),
      source(volumes, (volume) => claimKeysOfVolume(volume).flatMap(usersOf)),
      source(nodes, ({ metadata }) => pods.byIndex(LAUNCHERS_BY_NODE, metadata.name).flatMap(ofPod), {
        part: answers,
      }),
      ...states.sources,
      ...migrations.sources,
    ],
    rechecks: states.rechecks,
    async observe(key, options) {
      const vmi = vmis.get(key);
      if (vmi === undefined) return undefined;
      const launchers = launchersOf(pods, vmi);
      const pod = launchers.pod ?? (await missingPod(vmi, options));
      const podKey = keyOf({ namespace: vmi.metadata.namespace, name: currentLauncherName(vmi) });
      const lastPod = pod === undefined ? ended.of(podKey, vmi) : undefined;
      if (isDeleting(vmi)) ended.forget(podKey);
      const node = pod?.spec.nodeName ? nodes.get(pod.spec.nodeName) : undefined;
      const state = await states.of(vmi, pod, options);
      const now = timestamp(clock.now());
      return {
        vmi,
        ...launchers,
        pod,
        lastPod,
        claims: claimsOf(vmi),
        state,
        isMigrationActive: migrations.has(key),
        nodeAnswers: answers(node),
        now,
      };
    },
    decide: decideVmi,
    conclude: concludeVmi,
    subject: ({ vmi }) => vmi,
  });
}

/** Claims of what the guest has not let go of are told of, too. */
function claimNames(vmi: Vmi): Set<string> {
  return new Set([...claimNamesOf(vmi.spec), ...movableClaims(vmi)]);
}

function claimKeysOf(vmi: Vmi): string[] {
  const { namespace } = vmi.metadata;
  return [...claimNames(vmi)].map((name) => keyOf({ namespace, name }));
}

/** Unknown is what the cluster says of nodes that it has not heard of for some time. */
function answers(node: Node | undefined): boolean {
  const ready = findCondition(node?.status?.conditions, 'Ready');
  return ready !== undefined && ready.status !== 'Unknown';
}

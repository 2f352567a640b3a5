/**
 * The controller of VirtualMachineInstances. It observes an instance, its launcher pods, its claims and the claim with
 * its persistent state (observe-state.ts), and decides (decide-vmi.ts). It creates and deletes the pod, creates the
 * state claim and reports the phase. The node agent runs the guest and reports in the status of the pod and in its own
 * fields of the instance's status. claim-holds.ts holds the claims that the pod does not name. controllers/migration
 * creates target pods and records in the status of the instance which pod has the guest.
 */
import { describeUnofferedType, offeredTypeNames } from '#api/machine-types/offered-types.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { NetworkAddress } from '#api/network/network-address.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { Informer } from '#client/informer.ts';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { indexUnplaced, unplacedKeysIn } from '#controllers/shared/indexes/unplaced-instances.ts';
import { observeInstanceAddresses } from '#controllers/shared/network/instance-addresses.ts';
import { claimKeysOfVolume } from '#controllers/shared/indexes/claim-keys.ts';
import type { PlaneController } from '#controllers/shared/plane-controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { isFinalVmiPhase } from '#api/virtual-machine-instance/status.ts';
import { concludeVmi, decideVmi } from '#controllers/vmi/decide-vmi.ts';
import { findHeldClaims, findRivals, writtenClaimNames, type ClaimUsers } from '#controllers/vmi/claim-holders.ts';
import { ArrivalOrder } from '#controllers/vmi/arrival-order.ts';
import { EndedPods } from '#controllers/vmi/ended-pods.ts';
import { defineClaimHolds } from '#controllers/vmi/claim-holds.ts';
import { createStateObserver } from '#controllers/vmi/observe-state.ts';
import { hotpluggableClaimNames } from '#controllers/vmi/hotplugged-volumes.ts';
import { observeActiveMigrations } from '#controllers/vmi/active-migrations.ts';
import { claimViewsOf } from '#controllers/shared/launcher/claim-views.ts';
import {
  currentLauncherName,
  isLauncherOf,
  LAUNCHERS_BY_INSTANCE,
  LAUNCHERS_BY_NODE,
  launcherIndexKeys,
  launcherNodes,
  launchersOf,
} from '#controllers/shared/launcher/find-launchers.ts';
import {
  QUOTAS_BY_NAMESPACE,
  quotaNamespaces,
  resourcePolicyOf,
} from '#controllers/shared/launcher/resource-policy.ts';
import { claimNamesOf } from '#api/storage/claim-names.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { findCondition } from '#kube/conditions.ts';
import {
  NODES,
  type Node,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  type Pod,
  PODS,
  RESOURCE_QUOTAS,
} from '#kube/core-kinds.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import { createLiveReader } from '#runtime/live-reader.ts';
import {
  type ControllerDefinition,
  controllerKeys,
  defineController,
  source,
  startController,
} from '#runtime/controller.ts';

type Vmi = Stored<VirtualMachineInstance>;

const CONCURRENCY = 20;
/** The name of an index: instances by the keys of their claims. */
const BY_CLAIM = 'vmi-of-claim';
/** The name of an index: instances by the keys of the claims that they write. */
const BY_WRITTEN_CLAIM = 'vmi-of-written-claim';
const BY_UID = 'vmi-by-uid';
/** The name of an index: launcher pods for which the scheduler has found no node. */
const UNSCHEDULED_LAUNCHERS = 'unscheduled-launchers';

export const vmiController: PlaneController = {
  account: 'vmi-controller',
  eventSource: 'virtualmachineinstance-controller',
  start: (parts) => [startController(definition(parts), parts), startController(defineClaimHolds(parts), parts)],
};

function definition(parts: ControllerParts): ControllerDefinition<VmiWorld> {
  const { client, informer, clock, signal } = parts;
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const pods = informer(PODS);
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informer(PERSISTENT_VOLUMES);
  const nodes = informer(NODES);
  const quotas = informer(RESOURCE_QUOTAS);
  const kubevirts = informer(KUBEVIRTS);
  const vms = informer(VIRTUAL_MACHINES);
  quotas.addIndex(QUOTAS_BY_NAMESPACE, quotaNamespaces);
  indexUnplaced(vmis);
  const unplacedIn = (namespace: string) => unplacedKeysIn(vmis, namespace);
  vmis.addIndex(BY_CLAIM, claimKeysOf);
  vmis.addIndex(BY_WRITTEN_CLAIM, (vmi) => keysOfClaims(vmi, writtenClaimNames(vmi)));
  vmis.addIndex(BY_UID, ({ metadata }) => [metadata.uid]);
  const hasInstance = (uid: string) => vmis.byIndex(BY_UID, uid).length > 0;
  const endedPods = new EndedPods(pods, { vmis, hasInstance, signal });
  const arrivals = new ArrivalOrder(vmis, signal);
  const states = createStateObserver(parts);
  const addresses = observeInstanceAddresses(parts);
  const migrations = observeActiveMigrations(parts);
  pods.addIndex(LAUNCHERS_BY_INSTANCE, launcherIndexKeys);
  pods.addIndex(LAUNCHERS_BY_NODE, launcherNodes);
  pods.addIndex(UNSCHEDULED_LAUNCHERS, (pod) =>
    isUnschedulable(pod) && launcherIndexKeys(pod).length > 0 ? [UNSCHEDULED_LAUNCHERS] : [],
  );
  const readLive = createLiveReader(client);
  /** Returns the keys of the instance of a pod, even if the pod has lost its owner reference. */
  const keysOfPod = (pod: Stored<Pod>) => [
    ...controllerKeys(VIRTUAL_MACHINE_INSTANCES)(pod),
    ...launcherIndexKeys(pod).flatMap((uid) => vmis.byIndex(BY_UID, uid).map(objectKey)),
  ];
  const usersOf = (key: string): string[] => vmis.byIndex(BY_CLAIM, key).map(objectKey);
  const claimUsersIn = (namespace: string | undefined): ClaimUsers => ({
    usersOf: (name) => vmis.byIndex(BY_CLAIM, keyOf({ namespace, name })),
    writersOf: (name) => vmis.byIndex(BY_WRITTEN_CLAIM, keyOf({ namespace, name })),
    startsBefore: (first, second) => launchersOf(pods, first).pod !== undefined || arrivals.isBefore(first, second),
  });

  /** Reads the pod from the server: controllers/migration created it, so this controller's cache may lag behind. */
  async function readMissingPod(vmi: Vmi, options: { signal: AbortSignal }): Promise<Stored<Pod> | undefined> {
    if (vmi.status?.migrationState === undefined || isFinalVmiPhase(vmi.status.phase) || isDeleting(vmi))
      return undefined;
    const { namespace } = vmi.metadata;
    const pod = await readLive(PODS, { namespace, name: currentLauncherName(vmi) }, options);
    return pod !== undefined && isLauncherOf(pod, vmi) ? pod : undefined;
  }

  /** The cache is enough: controllers/network-address asks the server, and the launch waits for its writes. */
  const isAbandoned =
    (vmi: Vmi) =>
    ({ spec: { owner } }: NetworkAddress) => {
      const cached = owner.kind === 'VirtualMachine' ? vms.get(keyOf(owner)) : vmi;
      return cached?.metadata.uid !== owner.uid;
    };

  return defineController<VmiWorld>({
    name: 'vmi-controller',
    type: VIRTUAL_MACHINE_INSTANCES,
    concurrency: CONCURRENCY,
    sources: [
      source(vmis),
      source(vmis, (vmi) => findRivals(vmi, claimUsersIn(vmi.metadata.namespace)).map(objectKey)),
      source(pods, keysOfPod),
      source(claims, (claim) => usersOf(objectKey(claim))),
      source(volumes, (volume) => claimKeysOfVolume(volume).flatMap(usersOf)),
      source(nodes, ({ metadata }) => pods.byIndex(LAUNCHERS_BY_NODE, metadata.name).flatMap(keysOfPod), {
        part: isReachable,
      }),
      source(nodes, () => pods.byIndex(UNSCHEDULED_LAUNCHERS, UNSCHEDULED_LAUNCHERS).flatMap(keysOfPod), {
        part: offeredTypeNames,
      }),
      // A quota decides about the limits of new pods, and its use about whether they can be created.
      source(quotas, ({ metadata }) => unplacedIn(metadata.namespace ?? '')),
      source(kubevirts, () => unplacedIn(''), { part: ({ spec }) => spec?.configuration?.developerConfiguration }),
      ...addresses.sources,
      ...states.sources,
      ...migrations.sources,
    ],
    rechecks: states.rechecks,
    async observe(key, options) {
      const vmi = vmis.get(key);
      if (vmi === undefined) return undefined;
      const launchers = launchersOf(pods, vmi);
      const pod = launchers.pod ?? (await readMissingPod(vmi, options));
      const podKey = keyOf({ namespace: vmi.metadata.namespace, name: currentLauncherName(vmi) });
      const lastPod = pod === undefined ? endedPods.find(podKey, vmi) : undefined;
      if (isDeleting(vmi)) endedPods.forget(podKey);
      const node = pod?.spec.nodeName ? nodes.get(pod.spec.nodeName) : undefined;
      const state = await states.observe(vmi, pod, options);
      const now = timestamp(clock.now());
      const { namespace } = vmi.metadata;
      const views = claimViewsOf(claimNames(vmi), namespace, { claims, volumes });
      return {
        vmi,
        ...launchers,
        pod,
        lastPod,
        claims: views,
        heldClaims: findHeldClaims(vmi, views, claimUsersIn(namespace)),
        state,
        ...(pod === undefined && { addresses: addresses.plan(vmi, isAbandoned(vmi)) }),
        isMigrationActive: migrations.has(key),
        machineProblem: findMachineProblem(vmi, pod, nodes),
        isNodeReachable: isReachable(node),
        policy: resourcePolicyOf(vmi.metadata.namespace, { quotas, kubevirts }),
        now,
      };
    },
    decide: decideVmi,
    conclude: concludeVmi,
    subject: ({ vmi }) => vmi,
  });
}

/** Returns the claims in the spec, and those that the guest has not released yet. */
function claimNames(vmi: Vmi): Set<string> {
  return new Set([...claimNamesOf(vmi.spec), ...hotpluggableClaimNames(vmi)]);
}

function claimKeysOf(vmi: Vmi): string[] {
  return keysOfClaims(vmi, claimNames(vmi));
}

function keysOfClaims({ metadata: { namespace } }: Vmi, names: Iterable<string>): string[] {
  return [...names].map((name) => keyOf({ namespace, name }));
}

function isUnschedulable(pod: Pod | undefined): boolean {
  return findCondition(pod?.status?.conditions, 'PodScheduled')?.status === 'False';
}

/** Reads the nodes only if the pod cannot be scheduled. */
function findMachineProblem(
  { spec }: Vmi,
  pod: Pod | undefined,
  nodes: Pick<Informer<Node>, 'list'>,
): string | undefined {
  const { type } = spec.domain.machine ?? {};
  return type && isUnschedulable(pod) ? describeUnofferedType(type, nodes.list()) : undefined;
}

/** Reports whether the node is reachable. Kubernetes sets Ready to Unknown if a node has not reported for some time. */
function isReachable(node: Node | undefined): boolean {
  const ready = findCondition(node?.status?.conditions, 'Ready');
  return ready !== undefined && ready.status !== 'Unknown';
}

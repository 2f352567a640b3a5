/**
 * The controller of NetworkAddresses, and their only writer. Its keys are those of instances, which have the names of
 * their VMs. It observes an instance, its VM, its launcher pods and the addresses that belong to this name, and decides
 * (decide-addresses.ts): missing addresses are created, and those that nobody owns or wants are deleted once no pod uses
 * them. A stopped VM keeps its addresses.
 */
import { NETWORK_ADDRESSES, networkAddressName, type NetworkAddress } from '#api/network/network-address.ts';
import { hasPodAddresses, podAddressesOf } from '#api/network/pod-addresses.ts';
import { parseIfValid } from '#api/network/requested-addresses.ts';
import { REQUESTED_ADDRESSES_ANNOTATION } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { isFinalVmiPhase } from '#api/virtual-machine-instance/status.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { objectKey } from '#client/object-key.ts';
import { decideAddresses, type AddressesWorld } from '#controllers/network-address/decide-addresses.ts';
import { LAUNCHERS_BY_INSTANCE, launcherIndexKeys } from '#controllers/shared/launcher/find-launchers.ts';
import {
  ADDRESSES_BY_OWNER,
  observeInstanceAddresses,
  ownerKeyOf,
} from '#controllers/shared/network/instance-addresses.ts';
import type { PlaneController } from '#controllers/shared/plane-controller.ts';
import { PODS, type Pod } from '#kube/core-kinds.ts';
import { controllerOf, isDeleting, type KubeObject, type Stored } from '#kube/meta.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import {
  type ControllerDefinition,
  defineController,
  presenceOnly,
  source,
  startController,
} from '#runtime/controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { createLiveReader } from '#runtime/live-reader.ts';

type Vmi = Stored<VirtualMachineInstance>;

/** Two reconciles may choose the same address: the API server refuses the second one, which then takes the next. */
const CONCURRENCY = 10;
/** The name of an index: launcher pods that have not ended, by the names of the addresses in their annotation. */
const PODS_BY_ADDRESS = 'pods-by-guest-address';

export const networkAddressController: PlaneController = {
  account: 'network-address-controller',
  eventSource: 'network-address-controller',
  start: (parts) => [startController(definition(parts), parts)],
};

function definition(parts: ControllerParts): ControllerDefinition<AddressesWorld> {
  const { client, informer } = parts;
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const vms = informer(VIRTUAL_MACHINES);
  const pods = informer(PODS);
  const addresses = informer(NETWORK_ADDRESSES);
  const instances = observeInstanceAddresses(parts);
  pods.addIndex(LAUNCHERS_BY_INSTANCE, launcherIndexKeys);
  pods.addIndex(PODS_BY_ADDRESS, (pod) => (hasEnded(pod) ? [] : addressNamesIn(pod)));
  const readLive = createLiveReader(client);

  const ownersOf = (pod: Stored<Pod>) =>
    addressNamesIn(pod).flatMap((name) => {
      const address = addresses.get(name);
      return address === undefined ? [] : [ownerKeyOf(address)];
    });

  /** Returns the addresses whose owner the server no longer has. */
  async function findAbandoned(held: readonly Stored<NetworkAddress>[], options: { signal: AbortSignal }) {
    const abandoned: Stored<NetworkAddress>[] = [];
    for (const address of held) {
      const { kind, namespace, name, uid } = address.spec.owner;
      const [type, cache] =
        kind === 'VirtualMachine' ? ([VIRTUAL_MACHINES, vms] as const) : ([VIRTUAL_MACHINE_INSTANCES, vmis] as const);
      if (cache.get(ownerKeyOf(address))?.metadata.uid === uid) continue;
      const live = await readLive<KubeObject>(type, { namespace, name }, options);
      if (live?.metadata.uid !== uid) abandoned.push(address);
    }
    return abandoned;
  }

  /** Reports whether the instance gets addresses: one that was launched without them keeps its network until it ends. */
  function needsAddresses(vmi: Vmi): boolean {
    if (isDeleting(vmi) || isFinalVmiPhase(vmi.status?.phase)) return false;
    const controller = controllerOf(vmi);
    const vm = vms.get(objectKey(vmi));
    if (controller?.kind === VIRTUAL_MACHINES.kind && vm?.metadata.uid !== controller.uid) return false;
    const launchers = pods.byIndex(LAUNCHERS_BY_INSTANCE, vmi.metadata.uid);
    return launchers.length === 0 || launchers.some(hasPodAddresses);
  }

  return defineController<AddressesWorld>({
    name: 'network-address-controller',
    type: VIRTUAL_MACHINE_INSTANCES,
    concurrency: CONCURRENCY,
    sources: [
      source(vmis, (vmi) => [objectKey(vmi)], { part: planInputsOf }),
      source(vms, (vm) => [objectKey(vm)], { part: presenceOnly }),
      source(pods, (pod) => [...launcherInstanceKeys(pod), ...ownersOf(pod)], { part: hasEnded }),
      ...instances.sources,
    ],
    async observe(key, options) {
      const vmi = vmis.get(key);
      const held = addresses.byIndex(ADDRESSES_BY_OWNER, key);
      const abandoned = await findAbandoned(held, options);
      const isAbandoned = (address: Stored<NetworkAddress>) =>
        abandoned.some(({ metadata }) => metadata.uid === address.metadata.uid);
      return {
        vmi,
        plan: vmi !== undefined && needsAddresses(vmi) ? instances.plan(vmi, isAbandoned) : undefined,
        abandoned,
        isInUse: ({ metadata }) => pods.byIndex(PODS_BY_ADDRESS, metadata.name).length > 0,
      };
    },
    decide: decideAddresses,
    subject: ({ vmi }) => vmi,
  });
}

/** Returns the parts of an instance on which its plan depends. The generation stands for the spec. */
function planInputsOf({ metadata, status }: Vmi): unknown {
  const { annotations, ownerReferences, deletionTimestamp, generation, uid } = metadata;
  const requested = annotations?.[REQUESTED_ADDRESSES_ANNOTATION];
  return [uid, generation, requested, ownerReferences, deletionTimestamp, isFinalVmiPhase(status?.phase)];
}

/** Returns the key of the instance of a launcher pod. */
function launcherInstanceKeys(pod: Stored<Pod>): string[] {
  const controller = controllerOf(pod);
  const isLauncher = controller?.kind === VIRTUAL_MACHINE_INSTANCES.kind && launcherIndexKeys(pod).length > 0;
  return isLauncher ? [`${pod.metadata.namespace ?? ''}/${controller.name}`] : [];
}

function addressNamesIn(pod: Stored<Pod>): string[] {
  return Object.values(podAddressesOf(pod))
    .flat()
    .flatMap((text) => {
      const address = parseIfValid(text);
      return address === undefined ? [] : [networkAddressName(address)];
    });
}

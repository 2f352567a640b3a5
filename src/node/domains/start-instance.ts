/**
 * One attempt to start the guest of an instance: prepares its volumes, defines the domain and starts it. Expected failures
 * are returned; errors of the API are thrown, so that the queue tries again.
 */
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { GUEST_IMAGE } from '#api/names.ts';
import { needsState } from '#api/storage/persistent-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Reader } from '#client/client.ts';
import { getIfExists } from '#client/get-if-exists.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { readKnownDevices, NOTHING_KNOWN, type KnownDevices } from '#api/devices/known-devices.ts';
import { describeDiskProblem, findHolder } from '#node/domains/describe-disk-problem.ts';
import { createDomain } from '#node/guests/create-domain.ts';
import { findUserModeNetworks, type InstanceNetworks, type NetworkLookup } from '#node/guests/instance-networks.ts';
import type { GuestKernel } from '#node/guests/node-facts.ts';
import { hasEndedIn, volumeLookups } from '#node/guests/volume-lookups.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { Capabilities } from '#node/hardware/capabilities.ts';
import type {
  MissingVolume,
  Preparation,
  StatePreparation,
  VolumeLookups,
  Volumes,
} from '#node/volumes/volumes-port.ts';

/** The reason if the hypervisor cannot start the guest. */
export const START_FAILED = 'StartFailed';

export interface StartParts {
  readonly client: Reader;
  readonly hypervisor: Hypervisor;
  readonly capabilities: Capabilities;
  readonly volumes: Volumes;
  /** The built-in guest, if it is installed. */
  readonly guest: GuestKernel | undefined;
  /** The launcher pod of the instance. */
  readonly pod?: Stored<Pod> | undefined;
  /** Looks up networks; undefined if guests have no network namespaces on this node. */
  readonly instanceNetworks?: InstanceNetworks | undefined;
  /** The claim with the persistent state of the VM, if it has one. */
  readonly stateClaim?: string | undefined;
  /** Requests a ServiceAccount token for the pod of the instance. */
  readonly token?: VolumeLookups['token'];
  readonly signal: AbortSignal;
}

type StartOutcome =
  | {
      readonly is: 'started';
      /** Warnings for the user, although the guest runs. */
      readonly warnings: readonly { readonly reason: string; readonly message: string }[];
    }
  | { readonly is: 'waiting' | 'failed'; readonly reason: string; readonly message: string };

export async function startInstance(vmi: Stored<VirtualMachineInstance>, parts: StartParts): Promise<StartOutcome> {
  const { client, hypervisor, capabilities, guest, signal } = parts;
  const known = await knownDevices(vmi, client, signal);
  const network = await findNetworks(vmi, parts);
  if (network.is !== 'ready') return network;
  const prepared = await prepareVolumes(vmi, parts);
  if (prepared.is !== 'ready') return prepared;
  const state = await prepareState(vmi, parts);
  if (state !== undefined && state.is !== 'ready') return state;

  const image = vmi.spec.domain.firmware?.kernelBoot?.container?.image;
  const kernel = image?.split(':')[0] === GUEST_IMAGE ? guest : undefined;
  const created = await createDomain(
    {
      vmi,
      known,
      capabilities,
      volumes: prepared.volumes,
      kernel,
      network: network.facts,
      ...(state && { state: { directory: state.directory } }),
    },
    { paused: vmi.spec.startStrategy === 'Paused' },
    { hypervisor, signal },
  );
  if (created.is === 'refused') {
    const message = created.problems.map((problem) => `${problem.field}: ${problem.message}`).join(', ');
    return { is: 'failed', reason: 'InvalidDefinition', message };
  }
  if (created.is === 'failed') {
    const is = created.permanent ? 'failed' : 'waiting';
    const { disk, message } = created;
    if (disk === undefined) return { is, reason: START_FAILED, message };
    const path = prepared.volumes.get(disk.deviceId.replace(/^disk-/, ''))?.source.path;
    return { is, ...describeDiskProblem(disk, vmi, 'start', findHolder(path, vmi.metadata.uid, hypervisor)) };
  }
  return {
    is: 'started',
    warnings: startWarnings(prepared.missing, created.omittedDevices, created.omittedFeatures),
  };
}

/** Returns the networks of the instance, for a start or a hotplug. */
export async function findNetworks(
  vmi: Stored<VirtualMachineInstance>,
  { pod, instanceNetworks, signal }: Pick<StartParts, 'pod' | 'instanceNetworks' | 'signal'>,
): Promise<NetworkLookup> {
  if (pod === undefined || instanceNetworks === undefined) return findUserModeNetworks(vmi);
  return await instanceNetworks.resolve(vmi, pod, signal);
}

function startWarnings(
  missing: readonly MissingVolume[] = [],
  leftOut: readonly string[] = [],
  features: readonly string[] = [],
) {
  const missingDisks = missing.map(({ name, message }) => ({
    reason: 'OptionalDiskMissing',
    message: `Started without the optional disk "${name}": ${message}`,
  }));
  return [
    ...missingDisks,
    ...(leftOut.length === 0 ? [] : [{ reason: 'UnmanagedDevicesLeftOut', message: leftOut.join(' ') }]),
    ...(features.length === 0 ? [] : [{ reason: 'FeaturesLeftOut', message: features.join(' ') }]),
  ];
}

async function prepareState(
  vmi: Stored<VirtualMachineInstance>,
  { client, hypervisor, volumes, stateClaim, signal }: StartParts,
): Promise<StatePreparation | undefined> {
  // If the spec needs no state, the claim may be an ordinary disk, which must not be formatted.
  if (stateClaim === undefined || !needsState(vmi.spec)) return undefined;
  const options = { signal, hasEnded: hasEndedIn(hypervisor) };
  return await volumes.prepareState(
    vmi.metadata.uid,
    stateClaim,
    volumeLookups(vmi.metadata.namespace, client, signal),
    options,
  );
}

/** Prepares the volumes with these names; all volumes of the instance by default. */
export function prepareVolumes(
  vmi: Stored<VirtualMachineInstance>,
  {
    client,
    hypervisor,
    volumes,
    signal,
    token,
  }: Pick<StartParts, 'client' | 'hypervisor' | 'volumes' | 'signal' | 'token'>,
  names?: readonly string[],
): Promise<Preparation> {
  const options = { signal, hasEnded: hasEndedIn(hypervisor), ...(names === undefined ? {} : { names }) };
  return volumes.prepare(vmi, volumeLookups(vmi.metadata.namespace, client, signal, token), options);
}

/** Returns the devices of the VM's identity record; nothing for an instance without a VM. */
export async function knownDevices(
  { metadata }: Stored<VirtualMachineInstance>,
  client: Reader,
  signal: AbortSignal,
): Promise<KnownDevices> {
  const owner = metadata.ownerReferences?.find(({ kind, controller }) => kind === 'VirtualMachine' && controller);
  if (owner === undefined) return NOTHING_KNOWN;
  const name = { namespace: metadata.namespace, name: owner.name };
  const identity = await getIfExists(client, VIRTUAL_MACHINE_IDENTITIES, name, { signal });
  const isOfOwner = identity?.metadata.ownerReferences?.some(({ uid }) => uid === owner.uid);
  return isOfOwner ? readKnownDevices(identity?.status ?? {}) : NOTHING_KNOWN;
}

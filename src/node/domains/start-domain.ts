/**
 * One try to start a guest: volumes, definition, hypervisor. What is expected to go wrong comes back as a value; what the API
 * does wrong is thrown, for the queue to try again.
 */
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { GUEST_IMAGE } from '#api/names.ts';
import { needsState } from '#api/persistent-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { ObjectName, Reader } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import { CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, SECRETS } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { knownFrom, NOTHING_KNOWN, type KnownDevices } from '#node/definition/addresses/known-devices.ts';
import { createDomain } from '#node/domains/create-domain.ts';
import { hotpluggableClaims } from '#node/domains/hotplug-devices.ts';
import type { Capabilities, Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { MissingVolume, Preparation, StatePreparation, VolumeLookups, Volumes } from '#node/volumes-port.ts';

export interface GuestKernel {
  readonly kernelPath: string;
  readonly initrdPath: string;
}

export interface StartParts {
  readonly client: Reader;
  readonly hypervisor: Hypervisor;
  readonly capabilities: Capabilities;
  readonly volumes: Volumes;
  /** The built-in guest. */
  readonly guest: GuestKernel | undefined;
  /** The claim that holds the state of the VM, where something of it outlives the guest. */
  readonly stateClaim?: string | undefined;
  /** Of a ServiceAccount, for the pod of the instance. */
  readonly token?: VolumeLookups['token'];
  readonly signal: AbortSignal;
}

export type StartOutcome =
  | {
      readonly is: 'started';
      /** By the id of the disk. */
      readonly claims: ReadonlyMap<string, string>;
      /** What people should know of it, although it runs. */
      readonly notes: readonly { readonly reason: string; readonly message: string }[];
    }
  | { readonly is: 'waiting' | 'failed'; readonly reason: string; readonly message: string };

export async function startDomain(vmi: Stored<VirtualMachineInstance>, parts: StartParts): Promise<StartOutcome> {
  const { client, hypervisor, capabilities, guest, signal } = parts;
  const known = await knownDevices(vmi, client, signal);
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
    const { permanent, message } = created;
    return { is: permanent ? 'failed' : 'waiting', reason: 'StartFailed', message };
  }
  const claims = new Map([...hotpluggableClaims(vmi)].map(([name, claim]) => [`disk-${name}`, claim]));
  return { is: 'started', claims, notes: notesOf(prepared.missing, created.notes, created.left) };
}

function notesOf(
  missing: readonly MissingVolume[] = [],
  leftOut: readonly string[] = [],
  features: readonly string[] = [],
) {
  const notes = missing.map(({ name, message }) => ({
    reason: 'OptionalDiskMissing',
    message: `Started without the optional disk "${name}": ${message}`,
  }));
  return [
    ...notes,
    ...(leftOut.length === 0 ? [] : [{ reason: 'UnmanagedDevicesLeftOut', message: leftOut.join(' ') }]),
    ...(features.length === 0 ? [] : [{ reason: 'FeaturesLeftOut', message: features.join(' ') }]),
  ];
}

async function prepareState(
  vmi: Stored<VirtualMachineInstance>,
  { client, hypervisor, volumes, stateClaim, signal }: StartParts,
): Promise<StatePreparation | undefined> {
  // A disk of that name is no state: nobody may format it.
  if (stateClaim === undefined || !needsState(vmi.spec)) return undefined;
  const options = { signal, hasEnded: endedIn(hypervisor) };
  return await volumes.prepareState(
    vmi.metadata.uid,
    stateClaim,
    volumeLookups(vmi.metadata.namespace, client, signal),
    options,
  );
}

function endedIn(hypervisor: Hypervisor): (id: string) => boolean {
  return (id) => hypervisor.get(id)?.current.state === 'ended';
}

/** All volumes of the instance, or those that are named. */
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
  const options = { signal, hasEnded: endedIn(hypervisor), ...(names === undefined ? {} : { names }) };
  return volumes.prepare(vmi, volumeLookups(vmi.metadata.namespace, client, signal, token), options);
}

/** Where the devices of the VM were at its last start; a stand-alone instance has no past. */
export async function knownDevices(
  { metadata }: Stored<VirtualMachineInstance>,
  client: Reader,
  signal: AbortSignal,
): Promise<KnownDevices> {
  const owner = metadata.ownerReferences?.find(({ kind, controller }) => kind === 'VirtualMachine' && controller);
  if (owner === undefined) return NOTHING_KNOWN;
  const name = { namespace: metadata.namespace, name: owner.name };
  const identity = await getIfThere(client, VIRTUAL_MACHINE_IDENTITIES, name, signal);
  const isOfOwner = identity?.metadata.ownerReferences?.some(({ uid }) => uid === owner.uid);
  return isOfOwner ? knownFrom(identity?.status ?? {}) : NOTHING_KNOWN;
}

export function volumeLookups(
  namespace: string | undefined,
  client: Reader,
  signal: AbortSignal,
  token?: VolumeLookups['token'],
): VolumeLookups {
  return {
    claim: (name) => getIfThere(client, PERSISTENT_VOLUME_CLAIMS, { namespace, name }, signal),
    volume: (name) => getIfThere(client, PERSISTENT_VOLUMES, { name }, signal),
    secret: (name) => getIfThere(client, SECRETS, { namespace, name }, signal),
    configMap: (name) => getIfThere(client, CONFIG_MAPS, { namespace, name }, signal),
    ...(token && { token }),
  };
}

export async function getIfThere<T extends KubeObject>(
  client: Reader,
  type: ResourceType<T>,
  name: ObjectName,
  signal: AbortSignal,
): Promise<Stored<T> | undefined> {
  try {
    return await client.get(type, name, { signal });
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}

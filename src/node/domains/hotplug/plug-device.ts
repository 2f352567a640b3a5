/**
 * One attempt to plug a device into a running guest: prepares its volume, assigns an address and plugs it in. Expected
 * failures are returned; errors of the API are thrown, so that the queue tries again.
 */
import { networksOf } from '#api/devices/attached-interfaces.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import { defineHotplugDisk, defineHotplugInterface } from '#node/definition/define-hotplug.ts';
import type { Medium } from '#node/definition/devices/disk.ts';
import type { PluggableDevice } from '#node/hardware/domain-definition.ts';
import { describeDiskProblem, findHolder } from '#node/domains/describe-disk-problem.ts';
import type { HotplugDevice } from '#node/domains/hotplug/hotplug-devices.ts';
import { findNetworks, knownDevices, prepareVolumes, type StartParts } from '#node/domains/start-instance.ts';
import { HypervisorError, type DomainInspection } from '#node/hypervisor/hypervisor.ts';

type PlugOutcome =
  | { readonly is: 'plugged' }
  | { readonly is: 'waiting' | 'failed'; readonly reason: string; readonly message: string };

const NO_NAMESPACE =
  'the guest was started without a network namespace, which this network needs; restart the VM to connect it';

type PlugParts = Pick<StartParts, 'client' | 'hypervisor' | 'volumes' | 'signal'>;

export async function plugDevice(
  vmi: Stored<VirtualMachineInstance>,
  { type, name }: HotplugDevice,
  parts: PlugParts,
): Promise<PlugOutcome> {
  const { client, hypervisor, signal } = parts;
  const { uid } = vmi.metadata;
  let medium: Medium | undefined;
  if (type === 'disk') {
    const prepared = await prepareVolumes(vmi, parts, [name]);
    if (prepared.is !== 'ready') return prepared;
    medium = prepared.volumes.get(name);
    if (medium === undefined) return plugFailure(`the spec has no volume "${name}"`);
  }
  const known = await knownDevices(vmi, client, signal);
  // Read again, because the same decision may have plugged in other devices.
  const current = hypervisor.inspect(uid)?.definition;
  if (current === undefined) return { is: 'waiting', reason: 'GuestGone', message: 'the guest no longer exists' };
  // A guest that was started without a namespace cannot get one; the name of a definition is never that of a bridge.
  if (type === 'interface' && current.network === undefined && isSecondary(vmi, name)) return plugFailure(NO_NAMESPACE);
  const isConnected = type === 'interface' && current.network !== undefined;
  const network = isConnected ? await findNetworks(vmi, parts) : undefined;
  if (network !== undefined && network.is !== 'ready') return network;
  const input = { vmi, name, current, known, network: network?.facts };
  const placed = medium === undefined ? defineHotplugInterface(input) : defineHotplugDisk({ ...input, medium });
  if (placed.problem !== undefined) return plugFailure(placed.problem);
  try {
    await hypervisor.plug(uid, placed.device);
    return isInGuest(placed.device, hypervisor.inspect(uid)) ? { is: 'plugged' } : idInUseOutcome(placed.device);
  } catch (error) {
    if (!(error instanceof HypervisorError)) throw error;
    const { permanent, disk } = error;
    const is = permanent ? 'failed' : 'waiting';
    if (disk === undefined) return { is, reason: 'PlugFailed', message: error.message };
    return { is, ...describeDiskProblem(disk, vmi, 'plug in', findHolder(medium?.source.path, uid, hypervisor)) };
  }
}

function isSecondary({ spec }: VirtualMachineInstance, name: string): boolean {
  return networksOf(spec).some((network) => network.name === name && network.multus !== undefined);
}

/**
 * Reports whether the guest has this very device. An earlier attempt with unknown outcome may have plugged in a disk of
 * another claim under the same id.
 */
function isInGuest(device: PluggableDevice, inspection: DomainInspection | undefined): boolean {
  const present = inspection?.definition.devices.find(({ id }) => id === device.id);
  if (device.type === 'interface' || present?.type !== 'disk') return true;
  return present.source?.path === device.source?.path;
}

function idInUseOutcome({ id }: PluggableDevice): PlugOutcome {
  return { is: 'waiting', reason: 'PlugFailed', message: `the guest still has another ${id}` };
}

function plugFailure(message: string): PlugOutcome {
  return { is: 'failed', reason: 'PlugFailed', message };
}

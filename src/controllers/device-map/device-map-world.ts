/** Everything that a decision about one identity record may know, and simple conclusions from it. */
import { chipsetOf } from '#api/devices/chipset.ts';
import { importedDevicesOf } from '#api/devices/imported-devices.ts';
import { type VirtualMachine, runStrategyOf } from '#api/virtual-machine/kind.ts';
import type { RunStrategy } from '#api/virtual-machine/schema.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { SnapshotRecord } from '#api/virtual-machine-identity/record-state.ts';
import { type VirtualMachineInstance, isFinal } from '#api/virtual-machine-instance/kind.ts';
import type { DeviceReading } from '#controllers/device-map/reading.ts';
import type { SpecialDevices } from '#controllers/device-map/special-devices.ts';
import { controllerUid, type Stored } from '#kube/meta.ts';

export interface DeviceMapWorld {
  readonly identity: Stored<VirtualMachineIdentity>;
  readonly vm?: Stored<VirtualMachine>;
  readonly vmi?: Stored<VirtualMachineInstance>;
  /** The response of the node; `retryAfterMs` if it has no reading yet or did not respond. */
  readonly reading?: DeviceReading | { readonly retryAfterMs: number };
  /** The newest snapshot with the record; set if the record is lost and has no devices yet. */
  readonly snapshot?: SnapshotRecord;
  /** Devices that count as managed although no spec requests them. */
  readonly special: SpecialDevices;
  /** The name of the migration that handed over the state of the VM to another claim. */
  readonly migrationName?: string;
  /** RFC 3339. */
  readonly now: string;
}

/** Returns the VM of the record, or undefined while a restore writes the record. */
export function ownVm({ identity, vm }: DeviceMapWorld): Stored<VirtualMachine> | undefined {
  if (vm === undefined || controllerUid(identity) !== vm.metadata.uid) return undefined;
  return vm.status?.restoreInProgress === undefined ? vm : undefined;
}

export function ownInstance({ vm, vmi }: DeviceMapWorld): Stored<VirtualMachineInstance> | undefined {
  return vmi !== undefined && controllerUid(vmi) === vm?.metadata.uid ? vmi : undefined;
}

/**
 * Reports whether the VM has no instance and none is about to be created. An instance that is being created already has
 * its addresses, and between two instances the addresses of the next one must not depend on timing.
 */
export function isStopped(world: DeviceMapWorld): boolean {
  const vm = ownVm(world);
  if (vm === undefined || !STAYS_STOPPED.has(runStrategyOf(vm) ?? 'Halted')) return false;
  if ((vm.status?.stateChangeRequests ?? []).length > 0) return false;
  const vmi = ownInstance(world);
  return vmi === undefined || isFinal(vmi);
}

/** Strategies under which a VM does not start again by itself. */
const STAYS_STOPPED: ReadonlySet<RunStrategy> = new Set(['Halted', 'Manual']);

/** A running instance that reports its devices. Old nodes report no hash; nothing is learned from them. */
export interface ReportingInstance {
  readonly uid: string;
  readonly node: string;
  readonly machine: string;
  readonly hash: string;
  readonly revision: number;
}

export function reportingInstance(world: DeviceMapWorld): ReportingInstance | undefined {
  const vmi = ownInstance(world);
  // An instance under deletion still counts: the next one is to have the same addresses.
  if (vmi === undefined || vmi.status?.phase !== 'Running') return undefined;
  const { nodeName: node, machine, deviceHash: hash, deviceRevision: revision = 0 } = vmi.status;
  if (!node || !machine?.type || !hash) return undefined;
  return { uid: vmi.metadata.uid, node, machine: machine.type, hash, revision };
}

/** Reports whether the revision is older than the recorded one of the same instance. */
export function isOutdated(
  { identity }: DeviceMapWorld,
  { uid, revision }: { readonly uid: string; readonly revision: number },
): boolean {
  const { instance, deviceRevision = 0 } = identity.status ?? {};
  return instance === uid && revision < deviceRevision;
}

/** Returns the change of chipset, or undefined if there is none. Addresses of one chipset are void on another. */
export function findChipsetChange(
  { identity }: DeviceMapWorld,
  machine: string,
): { from: string; to: string } | undefined {
  const [from, to] = [chipsetOf(identity.status?.machine?.type), chipsetOf(machine)];
  return from === undefined || to === undefined || from === to ? undefined : { from, to };
}

/** Returns the node and VM whose devices must be read, or undefined if the record is up to date. */
export function dueReading(world: DeviceMapWorld): { readonly node: string; readonly vmId: string } | undefined {
  const vm = ownVm(world);
  const reporting = reportingInstance(world);
  if (vm === undefined || reporting === undefined || isOutdated(world, reporting)) return undefined;
  const { devices, deviceHash } = world.identity.status ?? {};
  // A snapshot or import is recorded first; the devices of the guest are compared with it later.
  const isSeeded = world.snapshot !== undefined || importedDevicesOf(vm) !== undefined;
  if (devices === undefined && isSeeded) return undefined;
  const isKnown = devices !== undefined && deviceHash === reporting.hash;
  if (isKnown && findChipsetChange(world, reporting.machine) === undefined) return undefined;
  return { node: reporting.node, vmId: reporting.uid };
}

/** All that a decision about one identity record may know, and what it says of the guest. */
import { isFinal, runStrategyOf } from '#api/can.ts';
import { chipsetOf } from '#api/chipset.ts';
import { importedDevicesOf } from '#api/imported-devices.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { RunStrategy } from '#api/virtual-machine/schema.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { RecordedInSnapshot } from '#api/virtual-machine-identity/record-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Reading } from '#controllers/device-map/reading.ts';
import type { SpecialDevices } from '#controllers/device-map/special-devices.ts';
import { controllerUid, type Stored } from '#kube/meta.ts';

export interface DeviceMapWorld {
  readonly identity: Stored<VirtualMachineIdentity>;
  readonly vm?: Stored<VirtualMachine>;
  readonly vmi?: Stored<VirtualMachineInstance>;
  /** What the node answered; or it was asked, and has nothing to tell before that time. */
  readonly reading?: Reading | { readonly retryAfterMs: number };
  /** The newest snapshot that holds the record; set where the record is lost and has no devices yet. */
  readonly snapshot?: RecordedInSnapshot;
  /** Devices that count as managed although no spec asks for them. */
  readonly special: SpecialDevices;
  /** The name of the migration that has handed the state of the VM over to another claim. */
  readonly migrationName?: string;
  /** RFC 3339. */
  readonly now: string;
}

/** The VM of the record, unless somebody else writes the record now. */
export function ownVm({ identity, vm }: DeviceMapWorld): Stored<VirtualMachine> | undefined {
  if (vm === undefined || controllerUid(identity) !== vm.metadata.uid) return undefined;
  return vm.status?.restoreInProgress === undefined ? vm : undefined;
}

export function ownInstance({ vm, vmi }: DeviceMapWorld): Stored<VirtualMachineInstance> | undefined {
  return vmi !== undefined && controllerUid(vmi) === vm?.metadata.uid ? vmi : undefined;
}

/**
 * No instance is there or about to come: one that is on its way was told where its devices are, and in the moment between
 * two of them, nothing that the next one gets is to depend on who is faster.
 */
export function isAtRest(world: DeviceMapWorld): boolean {
  const vm = ownVm(world);
  if (vm === undefined || !STAYS_STOPPED.has(runStrategyOf(vm) ?? 'Halted')) return false;
  if ((vm.status?.stateChangeRequests ?? []).length > 0) return false;
  const vmi = ownInstance(world);
  return vmi === undefined || isFinal(vmi);
}

/** The others start again by themselves. */
const STAYS_STOPPED: ReadonlySet<RunStrategy> = new Set(['Halted', 'Manual']);

/** An instance that runs and whose devices were read; a node that tells no hash is an old one, from which nothing is learned. */
export interface Speaking {
  readonly uid: string;
  readonly node: string;
  readonly machine: string;
  readonly hash: string;
  readonly revision: number;
}

export function speakingInstance(world: DeviceMapWorld): Speaking | undefined {
  const vmi = ownInstance(world);
  // One that is to end still counts: where it has its devices, the next one is to have them, too.
  if (vmi === undefined || vmi.status?.phase !== 'Running') return undefined;
  const { nodeName: node, machine, deviceHash: hash, deviceRevision: revision = 0 } = vmi.status;
  if (!node || !machine?.type || !hash) return undefined;
  return { uid: vmi.metadata.uid, node, machine: machine.type, hash, revision };
}

/** Older than what is on record of the same instance: it changes nothing. */
export function isOutdated(
  { identity }: DeviceMapWorld,
  { uid, revision }: { readonly uid: string; readonly revision: number },
): boolean {
  const { instance, deviceRevision = 0 } = identity.status ?? {};
  return instance === uid && revision < deviceRevision;
}

/** Addresses of one chipset mean nothing on another. */
export function chipsetChange({ identity }: DeviceMapWorld, machine: string): { from: string; to: string } | undefined {
  const [from, to] = [chipsetOf(identity.status?.machine?.type), chipsetOf(machine)];
  return from === undefined || to === undefined || from === to ? undefined : { from, to };
}

/** The VM to ask a node for; undefined where the record has what there is to know. */
export function readingDue(world: DeviceMapWorld): { readonly node: string; readonly vmId: string } | undefined {
  const vm = ownVm(world);
  const speaking = speakingInstance(world);
  if (vm === undefined || speaking === undefined || isOutdated(world, speaking)) return undefined;
  const { devices, deviceHash } = world.identity.status ?? {};
  // Snapshot and import come first: what the guest has is then compared with them.
  const isSeeded = world.snapshot !== undefined || importedDevicesOf(vm) !== undefined;
  if (devices === undefined && isSeeded) return undefined;
  const isKnown = devices !== undefined && deviceHash === speaking.hash;
  if (isKnown && chipsetChange(world, speaking.machine) === undefined) return undefined;
  return { node: speaking.node, vmId: speaking.uid };
}

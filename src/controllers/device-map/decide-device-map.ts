/**
 * What the identity record learns from the running instance: its machine type and devices, and a bounded history of what
 * changed and why. Nothing is learned from an instance that is not the VM's own or that does not run. Pure.
 */
import type { LearnedDevice } from '#api/learned-device.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { type IdentityStatus, MAX_HISTORY, type VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { deviceChanges, learnDevices } from '#controllers/device-map/learn-devices.ts';
import { deepEqual } from '#kube/deep.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import { NOTHING, type Plan } from '#runtime/plan.ts';

export interface DeviceMapWorld {
  readonly identity: Stored<VirtualMachineIdentity>;
  readonly vm?: Stored<VirtualMachine>;
  readonly vmi?: Stored<VirtualMachineInstance>;
  /** RFC 3339. */
  readonly now: string;
}

export function decideDeviceMap({ identity, vm, vmi, now }: DeviceMapWorld): Plan {
  if (vm === undefined || vmi === undefined || !belongs(identity, vm) || !belongs(vmi, vm)) return NOTHING;
  const { phase, machine, devices } = vmi.status ?? {};
  // The last words of an instance on its way out may be half of the truth.
  if (phase !== 'Running' || vmi.metadata.deletionTimestamp !== undefined) return NOTHING;
  if (!machine?.type || devices === undefined) return NOTHING;

  const known: IdentityStatus = identity.status ?? {};
  const learned = {
    machine: { type: machine.type },
    devices: learnDevices(vm, known.devices ?? [], devices),
    instance: vmi.metadata.uid,
  };
  const { machine: knownMachine, devices: knownDevices, instance } = known;
  if (deepEqual({ machine: knownMachine, devices: knownDevices, instance }, learned)) return NOTHING;
  const cause = instance === learned.instance ? 'a change while it ran' : `the start of instance ${learned.instance}`;
  const news = changesOf(known, learned).map((what) => ({ at: now, what, cause }));
  const history = [...(known.history ?? []), ...news].slice(-MAX_HISTORY);
  return { changes: [], status: { ...learned, learnedAt: now, ...(history.length === 0 ? {} : { history }) } };
}

function changesOf(known: IdentityStatus, { machine, devices }: Learned): string[] {
  if (known.devices === undefined) return [`first seen as ${machine.type} with ${devices.length} devices`];
  const from = known.machine?.type;
  const moved = from === machine.type ? [] : [`machine type changed from ${from ?? 'none'} to ${machine.type}`];
  return [...moved, ...deviceChanges(known.devices, devices)];
}

interface Learned {
  readonly machine: { readonly type: string };
  readonly devices: readonly LearnedDevice[];
}

function belongs({ metadata }: KubeObject, vm: Stored<VirtualMachine>): boolean {
  return metadata.ownerReferences?.some(({ controller, uid }) => controller && uid === vm.metadata.uid) === true;
}

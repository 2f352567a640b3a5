/** The differences between the devices of a running instance and those of its template, as steps. Pure. */
import { readEphemeralVolumes } from '#api/storage/ephemeral-volumes.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import {
  decideInterfaceSteps,
  type InterfaceSteps,
  type InterfaceHotplugInput,
} from '#controllers/vm/hotplug/hotplug-interfaces.ts';
import { decideVolumeSteps, type VolumeSteps } from '#controllers/vm/hotplug/hotplug-volumes.ts';
import { resolveIdentity, knownIdentity, ownRecord } from '#controllers/vm/identity/identity.ts';
import { buildVmi } from '#controllers/vm/start/build-vmi.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import type { Stored } from '#kube/meta.ts';

export interface DeviceSteps {
  /** The spec that a start would build now. */
  readonly next: VmiSpec;
  readonly volumes: VolumeSteps;
  readonly interfaces: InterfaceSteps;
  /** Names of volumes that were plugged into the instance for this run only. */
  readonly ephemeral: readonly string[];
  /** Names of ephemeral volumes that have since been added to the template as well. */
  readonly persisted: readonly string[];
}

/** Returns the differences between the instance and the template, whether or not they can be applied now. */
export function decideDeviceSteps(world: VmWorld, vmi: Stored<VirtualMachineInstance>): DeviceSteps {
  const { vm, configuration } = world;
  const next = buildVmi(vm, resolveIdentity(vm, knownIdentity(world), world), configuration).spec;
  const now = vmi.spec;
  const readNames = readEphemeralVolumes(vmi);
  const listed = new Set(readNames);
  // If the annotation cannot be read, any volume may have been plugged in for this run only: all of them stay.
  const isEphemeral = (name: string): boolean => readNames === undefined || listed.has(name);
  const wanted = new Set(next.volumes?.map(({ name }) => name));
  return {
    next,
    volumes: decideVolumeSteps({ next, now, isEphemeral, hotplug: vmi.status?.hotplug }),
    interfaces: decideInterfaceSteps({ next, now, ...recordedInterfaces(world, vmi) }),
    ephemeral: readNames ?? [],
    persisted: (readNames ?? []).filter((name) => wanted.has(name)),
  };
}

/** Returns the record's rows. An instance without a device hash is on an old node, whose devices are not recorded. */
function recordedInterfaces(
  world: VmWorld,
  { status }: VirtualMachineInstance,
): Pick<InterfaceHotplugInput, 'rows' | 'isRecordCurrent'> {
  const record = ownRecord(world);
  const { deviceHash: hash } = status ?? {};
  const isRecordCurrent = record === undefined || hash === undefined || record.status?.deviceHash === hash;
  return { rows: record?.status?.devices ?? [], isRecordCurrent };
}

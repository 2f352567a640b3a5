/**
 * Decides the verbs addvolume and removevolume. On a VM they change its template; on an instance they last for this run
 * only. Part of the table in decide-verb.ts, which also checks for a snapshot or restore that holds the VM. Pure.
 */
import type { AddedVolume, Allowed, Answer, CanWorld, Denial, Denied, JsonPatchOperation, Target } from '#api/can.ts';
import type { Volume } from '#api/domain/volume.ts';
import { formatEphemeralVolumes, readEphemeralVolumes } from '#api/ephemeral-volumes.ts';
import { EPHEMERAL_HOTPLUG_ANNOTATION } from '#api/names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { formatPointer } from '#kube/json-pointer.ts';
import { controllerUid, type Stored } from '#kube/meta.ts';

const TEMPLATE = ['spec', 'template', 'spec'];
const INSTANCE = ['spec'];

export function addVolume(world: CanWorld): Answer {
  return onTemplate(world, (spec) => {
    const { added } = world.options ?? {};
    return added === undefined ? NOTHING_NAMED : (addFault(spec, added) ?? withVolume(spec, added));
  });
}

export function removeVolume(world: CanWorld): Answer {
  return onTemplate(world, (spec) => {
    const found = removable(spec, world.options?.removed);
    return 'message' in found ? found : withoutVolume(spec, found.name);
  });
}

export function addVolumeToInstance(world: CanWorld): Answer {
  return onRunning(world, (vmi) => {
    const { added } = world.options ?? {};
    if (added === undefined) return NOTHING_NAMED;
    const { name } = added.volume;
    const changed = addFault(vmi.spec, added) ?? withVolume(vmi.spec, added);
    if ('message' in changed) return changed;
    // The VM controller would mistake it for the VM's volume of that name and replace it.
    if (isOfVm(world, name)) {
      return conflict(`Unable to add volume [${name}] because the VirtualMachine has a volume with that name`);
    }
    return { ...changed, ephemeral: [...ephemeralNames(world, vmi), name] };
  });
}

export function removeVolumeFromInstance(world: CanWorld): Answer {
  return onRunning(world, (vmi) => {
    const found = removable(vmi.spec, world.options?.removed);
    if ('message' in found) return found;
    const { name } = found;
    // The VM controller would plug a volume of the VM in again at once.
    if (isOfVm(world, name)) {
      return conflict(
        `Unable to remove volume [${name}] because the VirtualMachine has it; remove it from the VirtualMachine`,
      );
    }
    return { ...withoutVolume(vmi.spec, name), ephemeral: ephemeralNames(world, vmi).filter((one) => one !== name) };
  });
}

type Fault = Pick<Denial, 'code' | 'message'>;
/** The new lists. */
type Changed = Required<Pick<VmiSpec, 'volumes'>> & {
  readonly disks: NonNullable<VmiSpec['domain']['devices']>['disks'];
};

const conflict = (message: string): Fault => ({ code: 409, message });
const NOTHING_NAMED: Fault = { code: 400, message: 'AddVolumeOptions requires name to be set' };
const NO_NAME: Fault = { code: 400, message: 'RemoveVolumeOptions requires name to be set' };

function onTemplate(world: CanWorld, change: (spec: VmiSpec) => Changed | Fault): Answer {
  const { vm } = world;
  const spec = vm?.spec.template?.spec;
  if (vm === undefined) return denied(world, 'virtualmachine', { code: 404, message: 'not found' });
  if (spec?.domain === undefined) return denied(world, 'virtualmachine', conflict('the VirtualMachine has no domain'));
  const changed = change(spec);
  if ('message' in changed) return denied(world, 'virtualmachine', changed);
  const patch = listPatches(TEMPLATE, spec, changed);
  return allowed({ do: 'patchVm', uid: vm.metadata.uid, patch });
}

function onRunning(
  world: CanWorld,
  change: (vmi: Stored<VirtualMachineInstance>) => (Changed & { readonly ephemeral: readonly string[] }) | Fault,
): Answer {
  const { vmi } = world;
  const on = 'virtualmachineinstance';
  if (vmi === undefined) return denied(world, on, { code: 404, message: 'not found' });
  if (vmi.status?.phase !== 'Running') return denied(world, on, conflict('VMI is not running'));
  const changed = change(vmi);
  if ('message' in changed) return denied(world, on, changed);
  const patch = [...listPatches(INSTANCE, vmi.spec, changed), ...ephemeralPatch(vmi, changed.ephemeral)];
  return allowed({ do: 'patchVmi', uid: vmi.metadata.uid, patch });
}

function denied({ name }: CanWorld, on: Target, fault: Fault): Denied {
  return { denied: { ...fault, on, name } };
}

function allowed(step: Allowed['allowed'][number]): Allowed {
  return { code: 202, allowed: [step] };
}

function addFault({ volumes = [] }: VmiSpec, { volume }: AddedVolume): Fault | undefined {
  const { name, persistentVolumeClaim } = volume;
  if (volumes.some((one) => one.name === name)) {
    return conflict(`Unable to add volume [${name}] because volume with that name already exists`);
  }
  const source = persistentVolumeClaim.claimName;
  if (!volumes.some((one) => one.persistentVolumeClaim?.claimName === source)) return undefined;
  return conflict(`Unable to add volume source [${source}] because it already exists`);
}

/** Finds a volume by its name, or else by the name of its claim. */
function removable({ volumes = [] }: VmiSpec, name: string | undefined): Volume | Fault {
  if (name === undefined) return NO_NAME;
  const found =
    volumes.find((one) => one.name === name) ??
    volumes.find(({ persistentVolumeClaim: claim }) => claim?.claimName === name);
  if (found === undefined) return conflict(`Unable to remove volume [${name}] because it does not exist`);
  if (found.persistentVolumeClaim?.hotpluggable === true) return found;
  return conflict(`Unable to remove volume [${found.name}] because it is not hotpluggable`);
}

function withVolume({ volumes = [], domain }: VmiSpec, { volume, disk }: AddedVolume): Changed {
  return { volumes: [...volumes, volume], disks: [...(domain.devices?.disks ?? []), disk] };
}

function withoutVolume({ volumes = [], domain }: VmiSpec, name: string): Changed {
  const others = <T extends { readonly name: string }>(list: readonly T[]) => list.filter((one) => one.name !== name);
  return { volumes: others(volumes), disks: others(domain.devices?.disks ?? []) };
}

function isOfVm({ vm, vmi }: CanWorld, name: string): boolean {
  if (vm === undefined || vmi === undefined || controllerUid(vmi) !== vm.metadata.uid) return false;
  return vm.spec.template?.spec?.volumes?.some((one) => one.name === name) === true;
}

/**
 * Lists the volumes that were plugged in for this run only. If the annotation is unreadable, these are all hotplugged
 * volumes that the VM does not have: otherwise they would be unplugged.
 */
function ephemeralNames(world: CanWorld, vmi: Stored<VirtualMachineInstance>): readonly string[] {
  const noted = readEphemeralVolumes(vmi);
  if (noted !== undefined) return noted;
  const mobile = (vmi.spec.volumes ?? []).filter(({ persistentVolumeClaim: claim }) => claim?.hotpluggable === true);
  return mobile.map(({ name }) => name).filter((name) => !isOfVm(world, name));
}

/** Builds the patch of the two lists. It fails if a list has changed since it was read. */
function listPatches(path: readonly string[], spec: VmiSpec, { volumes, disks }: Changed): JsonPatchOperation[] {
  const { devices } = spec.domain;
  const atDevices = [...path, 'domain', 'devices'];
  return [
    ...replaced([...path, 'volumes'], spec.volumes, volumes),
    ...(devices === undefined
      ? replaced(atDevices, undefined, { disks })
      : replaced([...atDevices, 'disks'], devices.disks, disks)),
  ];
}

/** Builds the patch of the annotation. An empty annotation is removed. */
function ephemeralPatch(vmi: Stored<VirtualMachineInstance>, names: readonly string[]): JsonPatchOperation[] {
  const { annotations } = vmi.metadata;
  const now = annotations?.[EPHEMERAL_HOTPLUG_ANNOTATION];
  const path = ['metadata', 'annotations', EPHEMERAL_HOTPLUG_ANNOTATION];
  if (names.length === 0) {
    const gone: JsonPatchOperation = { op: 'remove', path: formatPointer(path) };
    return now === undefined ? [] : [seen(path, now), gone];
  }
  const wanted = formatEphemeralVolumes(names);
  if (annotations !== undefined) return replaced(path, now, wanted);
  return replaced(path.slice(0, -1), undefined, { [EPHEMERAL_HOTPLUG_ANNOTATION]: wanted });
}

function replaced(path: readonly string[], now: unknown, wanted: unknown): JsonPatchOperation[] {
  return [seen(path, now), { op: 'add', path: formatPointer(path), value: wanted }];
}

const seen = (path: readonly string[], value: unknown): JsonPatchOperation => ({
  op: 'test',
  path: formatPointer(path),
  value: value ?? null,
});

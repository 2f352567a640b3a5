/**
 * Decides the verbs addvolume and removevolume. On a VM they change its template; on an instance they last for this run
 * only. Part of the table in decide-verb.ts, which also checks for a snapshot or restore that holds the VM. Pure.
 */
import type { VmiVolume } from '#api/domain/volume.ts';
import { formatEphemeralVolumes, readEphemeralVolumes } from '#api/storage/ephemeral-volumes.ts';
import { EPHEMERAL_HOTPLUG_ANNOTATION } from '#api/names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { formatPointer } from '#kube/patches/json-pointer.ts';
import { controllerUid, type Stored } from '#kube/meta.ts';
import type {
  AddedVolume,
  AllowedDecision,
  VerbDecision,
  VerbWorld,
  Refusal,
  RefusedDecision,
  JsonPatchOperation,
  VerbTarget,
} from '#api/verbs/verb.ts';

const TEMPLATE = ['spec', 'template', 'spec'];
const INSTANCE = ['spec'];

export function decideAddVolume(world: VerbWorld): VerbDecision {
  return changeTemplate(world, (spec) => {
    const { added } = world.options ?? {};
    return added === undefined ? ADD_NAME_MISSING : (findAddRefusal(spec, added) ?? withVolume(spec, added));
  });
}

export function decideRemoveVolume(world: VerbWorld): VerbDecision {
  return changeTemplate(world, (spec) => {
    const found = findRemovable(spec, world.options?.removed);
    return 'message' in found ? found : withoutVolume(spec, found.name);
  });
}

export function decideAddVolumeToInstance(world: VerbWorld): VerbDecision {
  return changeRunningInstance(world, (vmi) => {
    const { added } = world.options ?? {};
    if (added === undefined) return ADD_NAME_MISSING;
    const { name } = added.volume;
    const changed = findAddRefusal(vmi.spec, added) ?? withVolume(vmi.spec, added);
    if ('message' in changed) return changed;
    // The VM controller would mistake it for the VM's volume of that name and replace it.
    if (isVolumeOfVm(world, name)) {
      return conflict(`Unable to add volume [${name}] because the VirtualMachine has a volume with that name`);
    }
    return { ...changed, ephemeral: [...listEphemeralNames(world, vmi), name] };
  });
}

export function decideRemoveVolumeFromInstance(world: VerbWorld): VerbDecision {
  return changeRunningInstance(world, (vmi) => {
    const found = findRemovable(vmi.spec, world.options?.removed);
    if ('message' in found) return found;
    const { name } = found;
    // The VM controller would plug a volume of the VM in again at once.
    if (isVolumeOfVm(world, name)) {
      return conflict(
        `Unable to remove volume [${name}] because the VirtualMachine has it; remove it from the VirtualMachine`,
      );
    }
    return {
      ...withoutVolume(vmi.spec, name),
      ephemeral: listEphemeralNames(world, vmi).filter((one) => one !== name),
    };
  });
}

type VolumeRefusal = Pick<Refusal, 'code' | 'message'>;
/** The new lists. */
type ChangedLists = Required<Pick<VmiSpec, 'volumes'>> & {
  readonly disks: NonNullable<VmiSpec['domain']['devices']>['disks'];
};

const conflict = (message: string): VolumeRefusal => ({ code: 409, message });
const ADD_NAME_MISSING: VolumeRefusal = { code: 400, message: 'AddVolumeOptions requires name to be set' };
const REMOVE_NAME_MISSING: VolumeRefusal = { code: 400, message: 'RemoveVolumeOptions requires name to be set' };

function changeTemplate(world: VerbWorld, change: (spec: VmiSpec) => ChangedLists | VolumeRefusal): VerbDecision {
  const { vm } = world;
  const spec = vm?.spec.template?.spec;
  if (vm === undefined) return refuse(world, 'virtualmachine', { code: 404, message: 'not found' });
  if (spec?.domain === undefined) return refuse(world, 'virtualmachine', conflict('the VirtualMachine has no domain'));
  const changed = change(spec);
  if ('message' in changed) return refuse(world, 'virtualmachine', changed);
  const patch = buildListPatches(TEMPLATE, spec, changed);
  return allow({ do: 'patchVm', uid: vm.metadata.uid, patch });
}

function changeRunningInstance(
  world: VerbWorld,
  change: (
    vmi: Stored<VirtualMachineInstance>,
  ) => (ChangedLists & { readonly ephemeral: readonly string[] }) | VolumeRefusal,
): VerbDecision {
  const { vmi } = world;
  const on = 'virtualmachineinstance';
  if (vmi === undefined) return refuse(world, on, { code: 404, message: 'not found' });
  if (vmi.status?.phase !== 'Running') return refuse(world, on, conflict('VMI is not running'));
  const changed = change(vmi);
  if ('message' in changed) return refuse(world, on, changed);
  const patch = [...buildListPatches(INSTANCE, vmi.spec, changed), ...buildEphemeralPatch(vmi, changed.ephemeral)];
  return allow({ do: 'patchVmi', uid: vmi.metadata.uid, patch });
}

function refuse({ name }: VerbWorld, on: VerbTarget, fault: VolumeRefusal): RefusedDecision {
  return { denied: { ...fault, on, name } };
}

function allow(step: AllowedDecision['allowed'][number]): AllowedDecision {
  return { code: 202, allowed: [step] };
}

function findAddRefusal({ volumes = [] }: VmiSpec, { volume }: AddedVolume): VolumeRefusal | undefined {
  const { name, persistentVolumeClaim } = volume;
  if (volumes.some((one) => one.name === name)) {
    return conflict(`Unable to add volume [${name}] because volume with that name already exists`);
  }
  const source = persistentVolumeClaim.claimName;
  if (!volumes.some((one) => one.persistentVolumeClaim?.claimName === source)) return undefined;
  return conflict(`Unable to add volume source [${source}] because it already exists`);
}

const isHotpluggable = ({ persistentVolumeClaim: claim }: VmiVolume) => claim?.hotpluggable === true;

/** Finds a volume by its name, or else by the name of its claim. */
function findRemovable({ volumes = [] }: VmiSpec, name: string | undefined): VmiVolume | VolumeRefusal {
  if (name === undefined) return REMOVE_NAME_MISSING;
  const found =
    volumes.find((one) => one.name === name) ??
    volumes.find(({ persistentVolumeClaim: claim }) => claim?.claimName === name);
  if (found === undefined) {
    const known = volumes.filter(isHotpluggable).map((one) => one.name);
    const choice = known.length === 0 ? 'no volume can be unplugged' : `these can be unplugged: ${known.join(', ')}`;
    return conflict(`Unable to remove volume [${name}] because it does not exist; ${choice}`);
  }
  if (isHotpluggable(found)) return found;
  return conflict(`Unable to remove volume [${found.name}] because it is not hotpluggable`);
}

function withVolume({ volumes = [], domain }: VmiSpec, { volume, disk }: AddedVolume): ChangedLists {
  return { volumes: [...volumes, volume], disks: [...(domain.devices?.disks ?? []), disk] };
}

function withoutVolume({ volumes = [], domain }: VmiSpec, name: string): ChangedLists {
  const others = <T extends { readonly name: string }>(list: readonly T[]) => list.filter((one) => one.name !== name);
  return { volumes: others(volumes), disks: others(domain.devices?.disks ?? []) };
}

function isVolumeOfVm({ vm, vmi }: VerbWorld, name: string): boolean {
  if (vm === undefined || vmi === undefined || controllerUid(vmi) !== vm.metadata.uid) return false;
  return vm.spec.template?.spec?.volumes?.some((one) => one.name === name) === true;
}

/**
 * Lists the volumes that were plugged in for this run only. If the annotation is unreadable, these are all hotplugged
 * volumes that the VM does not have: otherwise they would be unplugged.
 */
function listEphemeralNames(world: VerbWorld, vmi: Stored<VirtualMachineInstance>): readonly string[] {
  const recorded = readEphemeralVolumes(vmi);
  if (recorded !== undefined) return recorded;
  const hotpluggable = (vmi.spec.volumes ?? []).filter(
    ({ persistentVolumeClaim: claim }) => claim?.hotpluggable === true,
  );
  return hotpluggable.map(({ name }) => name).filter((name) => !isVolumeOfVm(world, name));
}

/** Builds the patch of the two lists. It fails if a list has changed since it was read. */
function buildListPatches(
  path: readonly string[],
  spec: VmiSpec,
  { volumes, disks }: ChangedLists,
): JsonPatchOperation[] {
  const { devices } = spec.domain;
  const atDevices = [...path, 'domain', 'devices'];
  return [
    ...replacePatch([...path, 'volumes'], spec.volumes, volumes),
    ...(devices === undefined
      ? replacePatch(atDevices, undefined, { disks })
      : replacePatch([...atDevices, 'disks'], devices.disks, disks)),
  ];
}

/** Builds the patch of the annotation. An empty annotation is removed. */
function buildEphemeralPatch(vmi: Stored<VirtualMachineInstance>, names: readonly string[]): JsonPatchOperation[] {
  const { annotations } = vmi.metadata;
  const now = annotations?.[EPHEMERAL_HOTPLUG_ANNOTATION];
  const path = ['metadata', 'annotations', EPHEMERAL_HOTPLUG_ANNOTATION];
  if (names.length === 0) {
    const removal: JsonPatchOperation = { op: 'remove', path: formatPointer(path) };
    return now === undefined ? [] : [testPatch(path, now), removal];
  }
  const wanted = formatEphemeralVolumes(names);
  if (annotations !== undefined) return replacePatch(path, now, wanted);
  return replacePatch(path.slice(0, -1), undefined, { [EPHEMERAL_HOTPLUG_ANNOTATION]: wanted });
}

function replacePatch(path: readonly string[], now: unknown, wanted: unknown): JsonPatchOperation[] {
  return [testPatch(path, now), { op: 'add', path: formatPointer(path), value: wanted }];
}

const testPatch = (path: readonly string[], value: unknown): JsonPatchOperation => ({
  op: 'test',
  path: formatPointer(path),
  value: value ?? null,
});

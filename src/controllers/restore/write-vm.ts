/** The target becomes what the snapshot holds, in one write: made after its record, or changed as it is held. Pure. */
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { ContentSpec } from '#api/virtual-machine-snapshot-content/kind.ts';
import { buildExistingVm, buildNewVm, uuidOf } from '#controllers/restore/build-restored-vm.ts';
import { fails, goesOn, tries } from '#controllers/restore/restore-status.ts';
import { type RestoreWorld, sameState } from '#controllers/restore/restore-world.ts';
import { recordBeforeVm } from '#controllers/restore/restored-identity.ts';
import type { Stored } from '#kube/meta.ts';
import type { Plan } from '#runtime/plan.ts';

/** Of the write that gives a VM a uuid which follows from its name. */
export const LEGACY_UUID = 'LegacyFirmwareUUID';
const RESTORED = 'VirtualMachineRestored';

export function writeVm(world: RestoreWorld): Plan | undefined {
  const { vm, content } = world;
  if (content === undefined) return undefined;
  return vm === undefined ? makeVm(world, content.spec) : changeVm(world, content.spec, vm);
}

function makeVm(world: RestoreWorld, content: ContentSpec): Plan {
  const built = buildNewVm(world, content);
  if ('refused' in built) return fails(world, 'Refused', built.refused);
  const { object, legacy } = built;
  const step = recordBeforeVm(world, content, object);
  if (step !== undefined && 'wait' in step) return goesOn(world, { reason: 'RecordLeft', message: step.wait });
  if (step !== undefined) return tries([step.change]);
  const told = reasonFor(world, content, legacy, `Created VirtualMachine ${object.metadata.name}`);
  return tries([{ do: 'create', type: VIRTUAL_MACHINES, object, ...told }]);
}

function changeVm(world: RestoreWorld, content: ContentSpec, vm: Stored<VirtualMachine>): Plan {
  const { object, legacy } = buildExistingVm(world, content, vm);
  const { name, namespace, uid } = vm.metadata;
  const { labels, annotations } = object.metadata;
  const body = [
    sameState(vm),
    { op: 'replace', path: '/spec', value: object.spec },
    ...(labels === undefined ? [] : [{ op: 'add', path: '/metadata/labels', value: labels }]),
    { op: 'add', path: '/metadata/annotations', value: annotations },
  ];
  const patch = { type: 'json', body } as const;
  const told = reasonFor(world, content, legacy, `Restored VirtualMachine ${name}`);
  return tries([{ do: 'patch', type: VIRTUAL_MACHINES, name: { name, namespace }, uid, patch, ...told }]);
}

function reasonFor({ restore }: RestoreWorld, content: ContentSpec, legacy: boolean, done: string) {
  const { virtualMachineSnapshotName: snapshot } = restore.spec;
  if (!legacy) return { reason: RESTORED, why: `${done} from snapshot ${snapshot}` };
  const { uuid } = uuidOf(content);
  const why = `${done} with the firmware uuid ${uuid} that follows from the name, because snapshot ${snapshot} has none`;
  return { reason: LEGACY_UUID, why };
}

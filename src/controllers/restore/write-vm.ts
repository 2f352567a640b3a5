/** Writes the target in one change: creates it after its identity record, or patches the existing VM. Pure. */
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { ContentSpec } from '#api/virtual-machine-snapshot-content/kind.ts';
import { buildExistingVm, buildNewVm, snapshotUuidOf } from '#controllers/restore/build-restored-vm.ts';
import { failRestore, continueRestore, tryChanges } from '#controllers/restore/restore-status.ts';
import { type RestoreWorld, unchangedOperation } from '#controllers/restore/restore-world.ts';
import { restoreRecordBeforeVm } from '#controllers/restore/restored-identity.ts';
import type { Stored } from '#kube/meta.ts';
import type { Plan } from '#runtime/plan.ts';

/** Reason of the change that gives a VM the legacy uuid. */
export const LEGACY_UUID_REASON = 'LegacyFirmwareUUID';
const RESTORED_REASON = 'VirtualMachineRestored';

export function writeVm(world: RestoreWorld): Plan | undefined {
  const { vm, content } = world;
  if (content === undefined) return undefined;
  return vm === undefined ? createVm(world, content.spec) : patchVm(world, content.spec, vm);
}

function createVm(world: RestoreWorld, content: ContentSpec): Plan {
  const built = buildNewVm(world, content);
  if ('refused' in built) return failRestore(world, 'Refused', built.refused);
  const { object, legacy } = built;
  const step = restoreRecordBeforeVm(world, content, object);
  if (step !== undefined && 'wait' in step) return continueRestore(world, { reason: 'RecordLeft', message: step.wait });
  if (step !== undefined) return tryChanges([step.change]);
  const explanation = explainWrite(world, content, legacy, `Created VirtualMachine ${object.metadata.name}`);
  return tryChanges([{ do: 'create', type: VIRTUAL_MACHINES, object, ...explanation }]);
}

function patchVm(world: RestoreWorld, content: ContentSpec, vm: Stored<VirtualMachine>): Plan {
  const { object, legacy } = buildExistingVm(world, content, vm);
  const { name, namespace, uid } = vm.metadata;
  const { labels, annotations } = object.metadata;
  const body = [
    unchangedOperation(vm),
    { op: 'replace', path: '/spec', value: object.spec },
    ...(labels === undefined ? [] : [{ op: 'add', path: '/metadata/labels', value: labels }]),
    { op: 'add', path: '/metadata/annotations', value: annotations },
  ];
  const patch = { type: 'json', body } as const;
  const explanation = explainWrite(world, content, legacy, `Restored VirtualMachine ${name}`);
  return tryChanges([{ do: 'patch', type: VIRTUAL_MACHINES, name: { name, namespace }, uid, patch, ...explanation }]);
}

function explainWrite({ restore }: RestoreWorld, content: ContentSpec, legacy: boolean, done: string) {
  const { virtualMachineSnapshotName: snapshot } = restore.spec;
  if (!legacy) return { reason: RESTORED_REASON, why: `${done} from snapshot ${snapshot}` };
  const { uuid } = snapshotUuidOf(content);
  const why = `${done} with the firmware uuid ${uuid}, derived from the name because snapshot ${snapshot} has none`;
  return { reason: LEGACY_UUID_REASON, why };
}

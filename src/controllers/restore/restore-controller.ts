/**
 * VirtualMachineRestores: a VM becomes what a snapshot holds. A target that is there is held by controllers/vm meanwhile;
 * the disks are filled by controllers/storage and the node agents, which see the claims that are made here.
 *
 *   target held and stopped ─► claims named ─► made ─► filled ─► identity record, VM ─► claims handed over ─► complete
 */
import { LEGACY_UUID_METRIC } from '#api/legacy-uuid.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import {
  isRestoreFinished,
  VIRTUAL_MACHINE_RESTORES,
  type VirtualMachineRestore,
} from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS } from '#api/virtual-machine-snapshot/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOT_CONTENTS } from '#api/virtual-machine-snapshot-content/kind.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { claimKeysOfInstance, claimKeysOfVm, claimKeysOfVolume } from '#controllers/claim-keys.ts';
import { stateIndexKey, stateIndexKeysOf } from '#controllers/persistent-state/claims-by-state.ts';
import type { PlaneController } from '#controllers/plane-controller.ts';
import { concludeRestore, decideRestore, RENEWED } from '#controllers/restore/decide-restore.ts';
import { restoreObserver } from '#controllers/restore/observe-restore.ts';
import { COMPLETED } from '#controllers/restore/restore-status.ts';
import type { RestoreWorld } from '#controllers/restore/restore-world.ts';
import { LEGACY_UUID } from '#controllers/restore/write-vm.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOTS } from '#kube/volume-snapshot-kinds.ts';
import {
  type ControllerDefinition,
  controllerKeys,
  defineController,
  source,
  startController,
} from '#runtime/controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import type { EventSink } from '#runtime/events.ts';

/** One at a time: two restores must not both find a uuid free. */
const CONCURRENCY = 1;
/** Unfinished restores by the key of what they look at. */
const BY_TARGET = 'restore-target';
const BY_SNAPSHOT = 'restore-snapshot';
const BY_CLAIM = 'restore-claim';
const BY_STATE = 'restore-state';
const BY_VOLUME_SNAPSHOT = 'restore-volume-snapshot';
/** All unfinished ones, by the word itself. */
const UNFINISHED = 'restore-unfinished';

export const restoreController: PlaneController = {
  account: 'restore-controller',
  eventSource: 'restore-controller',
  start(parts) {
    const events = alsoToldOfVms(parts.events, parts.informer(VIRTUAL_MACHINES));
    return [startController(definition(parts), { ...parts, events })];
  },
};

function definition(parts: ControllerParts): ControllerDefinition<RestoreWorld> {
  const { informer, metrics } = parts;
  const restores = informer(VIRTUAL_MACHINE_RESTORES);
  const contents = informer(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS);
  restores.addIndex(
    BY_TARGET,
    unfinished(({ spec }) => [spec.target.name]),
  );
  restores.addIndex(
    BY_SNAPSHOT,
    unfinished(({ spec }) => [spec.virtualMachineSnapshotName]),
  );
  restores.addIndex(BY_STATE, (restore) => (isRestoreFinished(restore) ? [] : [stateKeyOfTarget(restore)]));
  // Of finished ones too: those that failed take their claims away.
  restores.addIndex(BY_CLAIM, claimKeysOf);
  restores.addIndex(BY_VOLUME_SNAPSHOT, volumeSnapshotKeysOf);
  restores.addIndex(UNFINISHED, (restore) => (isRestoreFinished(restore) ? [] : [UNFINISHED]));
  const restoresBy = (index: string, key: string) => restores.byIndex(index, key).map(objectKey);
  const ofClaim = (key: string) => restoresBy(BY_CLAIM, key);
  const ofTarget = (object: Stored) => restoresBy(BY_TARGET, objectKey(object));
  const ofSnapshot = (namespace?: string, name = '') => restoresBy(BY_SNAPSHOT, keyOf({ namespace, name }));

  return defineController<RestoreWorld>({
    name: 'restore-controller',
    type: VIRTUAL_MACHINE_RESTORES,
    concurrency: CONCURRENCY,
    sources: [
      source(restores),
      // Another VM or instance that uses a claim of the restore may let go of it.
      source(informer(VIRTUAL_MACHINES), (vm) => [...ofTarget(vm), ...claimKeysOfVm(vm).flatMap(ofClaim)]),
      // Instances and records have the name of their VM.
      source(informer(VIRTUAL_MACHINE_INSTANCES), (vmi) => [
        ...ofTarget(vmi),
        ...claimKeysOfInstance(vmi).flatMap(ofClaim),
      ]),
      source(informer(VIRTUAL_MACHINE_IDENTITIES), ofTarget),
      source(informer(VIRTUAL_MACHINE_SNAPSHOTS), ({ metadata }) => ofSnapshot(metadata.namespace, metadata.name)),
      source(contents, ({ metadata, spec }) => ofSnapshot(metadata.namespace, spec.virtualMachineSnapshotName)),
      source(informer(PERSISTENT_VOLUME_CLAIMS), (claim) => [
        ...ofClaim(objectKey(claim)),
        // The state of the target: also without its marks, until it is gone.
        ...stateIndexKeysOf(claim).flatMap((key) => restoresBy(BY_STATE, key)),
        ...controllerKeys(VIRTUAL_MACHINES)(claim).flatMap((key) => restoresBy(BY_TARGET, key)),
      ]),
      source(informer(PERSISTENT_VOLUMES), (volume) => claimKeysOfVolume(volume).flatMap(ofClaim)),
      source(informer(STORAGE_CLASSES), () => restoresBy(UNFINISHED, UNFINISHED)),
      source(informer(VOLUME_SNAPSHOTS), (snapshot) => restoresBy(BY_VOLUME_SNAPSHOT, objectKey(snapshot))),
    ],
    observe: restoreObserver(parts),
    decide: decideRestore,
    conclude: concludeRestore,
    applied(change) {
      if (change.reason !== LEGACY_UUID) return;
      metrics.counter(LEGACY_UUID_METRIC.name, LEGACY_UUID_METRIC.help).add({ use: 'restore' });
    },
    subject: ({ restore }) => restore,
  });
}

type RestoreIndex = (restore: Stored<VirtualMachineRestore>) => string[];

function unfinished(namesOf: RestoreIndex): RestoreIndex {
  return (restore) => (isRestoreFinished(restore) ? [] : keysIn(restore, namesOf(restore)));
}

function stateKeyOfTarget({ metadata: { namespace }, spec }: Stored<VirtualMachineRestore>): string {
  return stateIndexKey({ namespace, name: spec.target.name });
}

function claimKeysOf(restore: Stored<VirtualMachineRestore>): string[] {
  if (restore.status?.complete === true) return [];
  return keysIn(restore, restore.status?.restores?.map((restored) => restored.persistentVolumeClaim) ?? []);
}

function volumeSnapshotKeysOf(restore: Stored<VirtualMachineRestore>): string[] {
  if (isRestoreFinished(restore)) return [];
  return keysIn(restore, restore.status?.restores?.map((restored) => restored.volumeSnapshotName) ?? []);
}

function keysIn({ metadata: { namespace } }: Stored, names: readonly string[]): string[] {
  return names.map((name) => keyOf({ namespace, name }));
}

const OF_VMS: ReadonlySet<string> = new Set([COMPLETED, RENEWED]);

/** Who looks at the VM is told, too, who it is now. */
function alsoToldOfVms(events: EventSink, vms: Informer<VirtualMachine>): EventSink {
  return {
    record(about, note) {
      events.record(about, note);
      if (about.kind !== VIRTUAL_MACHINE_RESTORES.kind || !OF_VMS.has(note.reason)) return;
      const { spec, metadata } = about as VirtualMachineRestore;
      const vm = vms.get(keyOf({ namespace: metadata.namespace, name: spec.target.name }));
      if (vm !== undefined) events.record(vm, note);
    },
  };
}

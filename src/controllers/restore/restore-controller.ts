/**
 * The controller of VirtualMachineRestores: makes a VM match a snapshot. controllers/vm holds an existing target
 * meanwhile; controllers/storage and the node agents fill the claims that are created here.
 *
 *   target held, stopped ─► claims named ─► created ─► filled ─► identity record, VM ─► claims handed over ─► complete
 */
import { LEGACY_UUID_METRIC } from '#api/identity/legacy-uuid.ts';
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
import { allClaimKeysOfVm, claimKeysOfInstance, claimKeysOfVolume } from '#controllers/shared/indexes/claim-keys.ts';
import { stateIndexKey, stateIndexKeysOf } from '#controllers/shared/persistent-state/claims-by-state.ts';
import type { PlaneController } from '#controllers/shared/plane-controller.ts';
import { concludeRestore, decideRestore, UUID_RENEWED_REASON } from '#controllers/restore/decide-restore.ts';
import { defineNeededSnapshots } from '#controllers/restore/needed-snapshots.ts';
import { createRestoreObserver } from '#controllers/restore/observe-restore.ts';
import { COMPLETED_REASON } from '#controllers/restore/restore-status.ts';
import type { RestoreWorld } from '#controllers/restore/restore-world.ts';
import { LEGACY_UUID_REASON } from '#controllers/restore/write-vm.ts';
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
import { CLAIMS_OWNED_REASON } from '#controllers/restore/claims.ts';
import { STATE_COPIED_REASON } from '#controllers/restore/restored-state.ts';
import type { EventSink } from '#runtime/events.ts';

/** Restores are decided one at a time: two must not both find a uuid free. */
const CONCURRENCY = 1;
/** Indexes of restores by the keys of the objects that they observe. */
const BY_TARGET = 'restore-target';
const BY_SNAPSHOT = 'restore-snapshot';
const BY_CLAIM = 'restore-claim';
const BY_STATE = 'restore-state';
const BY_VOLUME_SNAPSHOT = 'restore-volume-snapshot';
/** Index of unfinished restores. All have the same key: the name of the index. */
const UNFINISHED = 'restore-unfinished';

export const restoreController: PlaneController = {
  account: 'restore-controller',
  eventSource: 'restore-controller',
  start(parts) {
    const events = copyEventsToVms(parts.events, parts.informer(VIRTUAL_MACHINES));
    return [
      startController(defineRestores(parts), { ...parts, events }),
      startController(defineNeededSnapshots(parts), parts),
    ];
  },
};

function defineRestores(parts: ControllerParts): ControllerDefinition<RestoreWorld> {
  const { informer, metrics } = parts;
  const restores = informer(VIRTUAL_MACHINE_RESTORES);
  const contents = informer(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS);
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  restores.addIndex(
    BY_TARGET,
    unfinishedIndex(({ spec }) => [spec.target.name]),
  );
  restores.addIndex(
    BY_SNAPSHOT,
    unfinishedIndex(({ spec }) => [spec.virtualMachineSnapshotName]),
  );
  restores.addIndex(BY_STATE, (restore) => (isRestoreFinished(restore) ? [] : [stateKeyOfTarget(restore)]));
  // Includes finished restores: failed ones remove their claims.
  restores.addIndex(BY_CLAIM, claimKeysOf);
  restores.addIndex(BY_VOLUME_SNAPSHOT, volumeSnapshotKeysOf);
  restores.addIndex(UNFINISHED, (restore) => (isRestoreFinished(restore) ? [] : [UNFINISHED]));
  const keysBy = (index: string, key: string) => restores.byIndex(index, key).map(objectKey);
  const keysOfClaim = (key: string) => keysBy(BY_CLAIM, key);
  /** Includes restores that would replace the claim as the state of their target. */
  const keysOfNamedClaim = (key: string) => {
    const claim = claims.get(key);
    const states = claim === undefined ? [] : stateIndexKeysOf(claim);
    return [...keysOfClaim(key), ...states.flatMap((state) => keysBy(BY_STATE, state))];
  };
  const keysOfTarget = (object: Stored) => keysBy(BY_TARGET, objectKey(object));
  const keysOfSnapshot = (namespace?: string, name = '') => keysBy(BY_SNAPSHOT, keyOf({ namespace, name }));

  return defineController<RestoreWorld>({
    name: 'restore-controller',
    type: VIRTUAL_MACHINE_RESTORES,
    concurrency: CONCURRENCY,
    sources: [
      source(restores),
      // Another VM or instance may release a claim of the restore.
      source(informer(VIRTUAL_MACHINES), (vm) => [
        ...keysOfTarget(vm),
        ...allClaimKeysOfVm(vm).flatMap(keysOfNamedClaim),
      ]),
      // Instances and records have the name of their VM.
      source(informer(VIRTUAL_MACHINE_INSTANCES), (vmi) => [
        ...keysOfTarget(vmi),
        ...claimKeysOfInstance(vmi).flatMap(keysOfClaim),
      ]),
      source(informer(VIRTUAL_MACHINE_IDENTITIES), keysOfTarget),
      source(informer(VIRTUAL_MACHINE_SNAPSHOTS), ({ metadata }) => keysOfSnapshot(metadata.namespace, metadata.name)),
      source(contents, ({ metadata, spec }) => keysOfSnapshot(metadata.namespace, spec.virtualMachineSnapshotName)),
      source(claims, (claim) => [
        ...keysOfClaim(objectKey(claim)),
        // The state of the target, also without its marks until it is deleted.
        ...stateIndexKeysOf(claim).flatMap((key) => keysBy(BY_STATE, key)),
        ...controllerKeys(VIRTUAL_MACHINES)(claim).flatMap((key) => keysBy(BY_TARGET, key)),
      ]),
      source(informer(PERSISTENT_VOLUMES), (volume) => claimKeysOfVolume(volume).flatMap(keysOfClaim)),
      source(informer(STORAGE_CLASSES), () => keysBy(UNFINISHED, UNFINISHED)),
      source(informer(VOLUME_SNAPSHOTS), (snapshot) => keysBy(BY_VOLUME_SNAPSHOT, objectKey(snapshot))),
    ],
    observe: createRestoreObserver(parts),
    decide: decideRestore,
    conclude: concludeRestore,
    onApplied(change) {
      if (change.reason !== LEGACY_UUID_REASON) return;
      metrics.counter(LEGACY_UUID_METRIC).add({ use: 'restore' });
    },
    subject: ({ restore }) => restore,
  });
}

type RestoreIndex = (restore: Stored<VirtualMachineRestore>) => string[];

function unfinishedIndex(namesOf: RestoreIndex): RestoreIndex {
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

const VM_EVENT_REASONS: ReadonlySet<string> = new Set([
  COMPLETED_REASON,
  UUID_RENEWED_REASON,
  STATE_COPIED_REASON,
  CLAIMS_OWNED_REASON,
]);

/** Returns a sink that also records the important Events of a restore on its target. */
function copyEventsToVms(events: EventSink, vms: Informer<VirtualMachine>): EventSink {
  return {
    record(about, note) {
      events.record(about, note);
      if (about.kind !== VIRTUAL_MACHINE_RESTORES.kind || !VM_EVENT_REASONS.has(note.reason)) return;
      const { spec, metadata } = about as VirtualMachineRestore;
      const vm = vms.get(keyOf({ namespace: metadata.namespace, name: spec.target.name }));
      if (vm !== undefined) events.record(vm, note);
    },
  };
}

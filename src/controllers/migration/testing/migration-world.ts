/** Builds worlds of one migration for tests: valid, at a given step, with overrides. */
import { FULL_MEMORY } from '#controllers/shared/launcher/launcher-resources.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import type { MigrationProgress, MigrationState } from '#api/migration/migration-state.ts';
import {
  APP_LABEL,
  CREATED_BY_LABEL,
  DOMAIN_ANNOTATION,
  LAUNCHER_APP,
  LOCAL_DRIVER,
  MIGRATION_FINALIZER,
  MIGRATION_NAME_LABEL,
  MIGRATION_POD_FINALIZER,
  MIGRATION_UID_LABEL,
  VOLUME_NODE_ANNOTATION,
} from '#api/names.ts';
import type { MigrationStatus } from '#api/virtual-machine-instance-migration/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import type { StoredMigration, MigrationWorld } from '#controllers/migration/migration-world.ts';
import { launcherPodName, targetPodName } from '#controllers/shared/launcher/launcher-pod.ts';
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';

export const NOW_MS = Date.parse('2030-01-01T00:00:00Z');
export const NOW = timestamp(NOW_MS);
export const UID = 'migration-uid';
export const VM_UID = 'vm-uid';
export const VMI_UID = 'vmi-uid';
export const SOURCE = 'node-a';
export const TARGET = 'node-b';
export const SOURCE_CLAIM = 'persistent-state-for-db-1';
export const TARGET_CLAIM = 'persistent-state-for-db-2';

const storedMetadata = (name: string, uid: string, more: ObjectMeta = {}) => ({
  namespace: 'ns',
  name,
  uid,
  resourceVersion: '1',
  creationTimestamp: NOW,
  ...more,
});

const ofVm = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid: VM_UID, controller: true };

export function aMigration(status?: MigrationStatus, meta: ObjectMeta = {}): StoredMigration {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: storedMetadata('go', UID, { finalizers: [MIGRATION_FINALIZER], ...meta }),
    spec: { vmiName: 'db' },
    ...(status === undefined ? {} : { status }),
  };
}

/** Builds an instance with a persistent TPM and a node-local disk. */
export function aVmi(
  status: VmiStatus = {},
  spec: Partial<VmiSpec> = {},
  meta: ObjectMeta = {},
): Stored<VirtualMachineInstance> {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: storedMetadata('db', VMI_UID, { ownerReferences: [ofVm], ...meta }),
    spec: {
      domain: {
        memory: { guest: '128Mi' },
        devices: { disks: [{ name: 'root', disk: { bus: 'virtio' } }], tpm: { persistent: true } },
      },
      volumes: [{ name: 'root', persistentVolumeClaim: { claimName: 'db-root' } }],
      ...spec,
    },
    status: {
      phase: 'Running',
      nodeName: SOURCE,
      conditions: [{ type: 'LiveMigratable', status: 'True' }],
      ...status,
    },
  };
}

export function aPod(
  of: 'source' | 'target',
  { nodeName, ...status }: NonNullable<Pod['status']> & { nodeName?: string } = {},
  meta: ObjectMeta = {},
): Stored<Pod> {
  const isTarget = of === 'target';
  const node = nodeName ?? (isTarget ? TARGET : SOURCE);
  const claimName = isTarget ? TARGET_CLAIM : SOURCE_CLAIM;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: storedMetadata(isTarget ? TARGET_POD : SOURCE_POD, `${of}-pod-uid`, {
      labels: {
        [APP_LABEL]: LAUNCHER_APP,
        [CREATED_BY_LABEL]: VMI_UID,
        ...(isTarget ? { [MIGRATION_UID_LABEL]: UID } : {}),
      },
      annotations: { [DOMAIN_ANNOTATION]: 'db' },
      ...(isTarget ? { finalizers: [MIGRATION_POD_FINALIZER] } : {}),
      ...meta,
    }),
    spec: {
      ...(node === '' ? {} : { nodeName: node }),
      containers: [{ name: 'compute', image: 'x' }],
      volumes: [
        { name: 'root', persistentVolumeClaim: { claimName: 'db-root' } },
        { name: 'vm-state', persistentVolumeClaim: { claimName } },
      ],
    },
    status: { phase: isTarget ? 'Pending' : 'Running', ...status },
  };
}

export const SOURCE_POD = launcherPodName(aVmi());
export const TARGET_POD = targetPodName(aVmi(), UID);

/** Builds the state claim of the source or, without the mark of the VM, of the target. */
export function aStateClaim(of: 'source' | 'target', meta: ObjectMeta = {}): Stored<PersistentVolumeClaim> {
  const marks: ObjectMeta =
    of === 'source'
      ? { labels: { 'persistent-state-for': 'db' }, annotations: { 'persistent-state-for-db': 'true' } }
      : { labels: { [MIGRATION_NAME_LABEL]: 'go' } };
  const name = of === 'source' ? SOURCE_CLAIM : TARGET_CLAIM;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: storedMetadata(name, `${of}-claim-uid`, { ownerReferences: [ofVm], ...marks, ...meta }),
    spec: {
      storageClassName: 'local',
      volumeMode: 'Filesystem',
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '10Mi' } },
    },
    status: { phase: 'Bound' },
  };
}

export function aDiskClaim(): Stored<PersistentVolumeClaim> {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: storedMetadata('db-root', 'root-claim-uid'),
    spec: { accessModes: ['ReadWriteOnce'], volumeName: 'pv-root' },
    status: { phase: 'Bound' },
  };
}

export function aVolume(annotations: Record<string, string> = {}): Stored<PersistentVolume> {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      ...storedMetadata('pv-root', 'pv-uid'),
      namespace: undefined,
      annotations: { [VOLUME_NODE_ANNOTATION]: SOURCE, ...annotations },
    },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      claimRef: { namespace: 'ns', name: 'db-root', uid: 'root-claim-uid' },
      csi: { driver: LOCAL_DRIVER, volumeHandle: 'pv-root' },
    },
  };
}

export const BEGUN: MigrationState = {
  migrationUid: UID,
  mode: 'PreCopy',
  sourceNode: SOURCE,
  sourcePod: SOURCE_POD,
  targetPod: TARGET_POD,
  sourcePersistentStatePVCName: SOURCE_CLAIM,
  targetPersistentStatePVCName: TARGET_CLAIM,
};
export const ANNOUNCED: MigrationState = {
  ...BEGUN,
  targetNode: TARGET,
  targetPodUID: 'target-pod-uid',
  mirroredVolumes: ['root'],
  startTimestamp: NOW,
};

export function progress(phase: MigrationProgress['phase'], message?: string): MigrationProgress {
  return { migrationUid: UID, phase, ...(message === undefined ? {} : { message }) };
}

/** Builds the world of a migration that has not begun. */
export function aWorld(more: Partial<MigrationWorld> = {}): MigrationWorld {
  return {
    migration: aMigration(),
    vmi: aVmi(),
    sourcePod: aPod('source'),
    claims: new Map([['db-root', { claim: aDiskClaim(), volume: aVolume() }]]),
    sourceClaim: aStateClaim('source'),
    isClaimNameTaken: () => false,
    otherUserOf: () => undefined,
    otherVmOf: () => undefined,
    incoming: [],
    others: [],
    finished: [],
    active: { inCluster: 0, fromNode: 0 },
    settings: configurationOf(undefined).migrations,
    policy: FULL_MEMORY,
    isSourceResponding: true,
    isTargetResponding: true,
    now: NOW_MS,
    ...more,
  };
}

const at = (...phases: string[]) => phases.map((phase) => ({ phase, phaseTransitionTimestamp: NOW }));

/** Builds the world of a migration whose target claim and pod exist. */
export function aBegunWorld(more: Partial<MigrationWorld> = {}, meta: ObjectMeta = {}): MigrationWorld {
  const status: MigrationStatus = {
    phase: 'Scheduling',
    phaseTransitionTimestamps: at('Pending', 'Scheduling'),
    migrationState: BEGUN,
  };
  const target = { targetPod: aPod('target', { nodeName: '' }), targetClaim: aStateClaim('target') };
  return aWorld({ migration: aMigration(status, meta), ...target, ...more });
}

/** Builds the world of a migration that is announced to the agents. */
export function anAnnouncedWorld(
  more: Partial<MigrationWorld> & { readonly vmiStatus?: VmiStatus } = {},
  meta: ObjectMeta = {},
): MigrationWorld {
  const { vmiStatus, ...rest } = more;
  const status: MigrationStatus = {
    phase: 'PreparingTarget',
    phaseTransitionTimestamps: at('Pending', 'Scheduling', 'Scheduled', 'PreparingTarget'),
    migrationState: ANNOUNCED,
  };
  const finalizers = [MIGRATION_POD_FINALIZER];
  return aBegunWorld({
    migration: aMigration(status, meta),
    vmi: aVmi({ migrationState: ANNOUNCED, ...vmiStatus }),
    sourcePod: aPod('source', {}, { finalizers }),
    targetPod: aPod('target'),
    ...rest,
  });
}

/** Builders of valid objects for tests, with merge patches as overrides: null removes a field. */
import { configurationOf } from '#api/kubevirt/configuration.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstanceMigration } from '#api/virtual-machine-instance-migration/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import type { VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { applyMergePatch } from '#kube/patches/merge-patch.ts';

export const CONFIGURATION = configurationOf(undefined);

const SPEC: VmiSpec = {
  domain: {
    cpu: { sockets: 1, cores: 2, threads: 1, model: 'host-model' },
    memory: { guest: '256Mi' },
    machine: { type: 'q35' },
    firmware: { uuid: '5d307ca9-b3ef-428c-8861-06e72d69f223', serial: 'A-1' },
    devices: {
      disks: [
        { name: 'root', bootOrder: 1, disk: { bus: 'virtio' } },
        { name: 'seed', cdrom: { bus: 'sata' } },
      ],
      interfaces: [{ name: 'default', bootOrder: 2, masquerade: {} }],
    },
  },
  networks: [{ name: 'default', pod: {} }],
  volumes: [
    { name: 'root', persistentVolumeClaim: { claimName: 'root' } },
    { name: 'seed', cloudInitNoCloud: { userData: '#cloud-config' } },
  ],
};

export function aSpec(patch: unknown = {}): VmiSpec {
  return applyMergePatch(structuredClone(SPEC), patch) as VmiSpec;
}

export function aVm(patch: unknown = {}): VirtualMachine {
  const vm = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'db', namespace: 'golden' },
    spec: { runStrategy: 'Always', template: { spec: aSpec() } },
  };
  return applyMergePatch(vm, patch) as VirtualMachine;
}

export function aVmi(patch: unknown = {}): VirtualMachineInstance {
  const vmi = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'db', namespace: 'golden' },
    spec: aSpec(),
  };
  return applyMergePatch(vmi, patch) as VirtualMachineInstance;
}

export function aMigration(patch: unknown = {}): VirtualMachineInstanceMigration {
  const migration = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: 'm1', namespace: 'golden' },
    spec: { vmiName: 'db' },
  };
  return applyMergePatch(migration, patch) as VirtualMachineInstanceMigration;
}

export function aSnapshot(patch: unknown = {}): VirtualMachineSnapshot {
  const snapshot = {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: { name: 's1', namespace: 'golden' },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'db' } },
  };
  return applyMergePatch(snapshot, patch) as VirtualMachineSnapshot;
}

export function aRestore(patch: unknown = {}): VirtualMachineRestore {
  const restore = {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineRestore',
    metadata: { name: 'r1', namespace: 'golden' },
    spec: {
      target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'db' },
      virtualMachineSnapshotName: 's1',
    },
  };
  return applyMergePatch(restore, patch) as VirtualMachineRestore;
}

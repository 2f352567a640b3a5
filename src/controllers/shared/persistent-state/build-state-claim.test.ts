/**
 * Tests the claim of persistent state: the cases S9 and S11 of KubeVirt's own tests, with the name and annotation that
 * seed 001 requires (docs/seeds.md).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findStateClaim, stateOwnerOf, stateSuffixOf } from '#api/storage/persistent-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { vmOwnerReference } from '#api/virtual-machine/owner.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { buildStateClaim } from '#controllers/shared/persistent-state/build-state-claim.ts';
import { stateIndexKey, stateIndexKeysOf } from '#controllers/shared/persistent-state/claims-by-state.ts';
import type { StateStorage } from '#controllers/shared/persistent-state/select-storage.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { OwnerReference, Stored } from '#kube/meta.ts';

const STORAGE: StateStorage = {
  storageClassName: 'fast',
  volumeMode: 'Filesystem',
  accessMode: 'ReadWriteOnce',
  size: '10Mi',
};
const NOW = '2026-01-01T00:00:00Z';

const identity = (name: string, uid: string) => ({
  namespace: 'ns',
  name,
  uid,
  resourceVersion: '1',
  creationTimestamp: NOW,
});

function aVm(name = 'db'): Stored<VirtualMachine> {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: identity(name, 'vm-uid'),
    spec: { template: {} },
  };
}

function aVmi(ownerReferences?: OwnerReference[]): Stored<VirtualMachineInstance> {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { ...identity('db', 'vmi-uid'), ownerReferences },
    spec: { domain: {} },
  };
}

test('S9: the claim has the settings of the storage, and the marks by which it is found', () => {
  assert.deepEqual(buildStateClaim(aVm(), STORAGE, 'x4b2z'), {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: 'persistent-state-for-db-x4b2z',
      namespace: 'ns',
      labels: { 'persistent-state-for': 'db', 'cdi.kubevirt.io/applyStorageProfile': 'true' },
      annotations: { 'persistent-state-for-db': 'true' },
      ownerReferences: [vmOwnerReference(aVm())],
    },
    spec: {
      storageClassName: 'fast',
      volumeMode: 'Filesystem',
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '10Mi' } },
    },
  });
});

test('the claim has the modes and the size of the storage', () => {
  const storage: StateStorage = { ...STORAGE, volumeMode: 'Block', accessMode: 'ReadWriteMany', size: '4Gi' };
  const { spec } = buildStateClaim(aVm(), storage, 'x4b2z');
  assert.deepEqual(
    [spec.volumeMode, spec.accessModes, spec.resources],
    ['Block', ['ReadWriteMany'], { requests: { storage: '4Gi' } }],
  );
});

describe('S11: the claim belongs to', () => {
  const vmi = { kind: 'VirtualMachineInstance', name: 'db', uid: 'vmi-uid' };
  const vm = { kind: 'VirtualMachine', name: 'db', uid: 'vm-uid' };
  const set = { ...vmOwnerReference(aVm()), kind: 'VirtualMachineInstanceReplicaSet', name: 'set', uid: 'set-uid' };
  const cases: Record<string, { owner: Parameters<typeof buildStateClaim>[0]; want: Partial<OwnerReference> }> = {
    'the VM': { owner: aVm(), want: vm },
    'the VM of the instance': { owner: aVmi([vmOwnerReference(aVm())]), want: vm },
    'an instance without a VM': { owner: aVmi(), want: vmi },
    'an instance of a replica set': { owner: aVmi([set]), want: vmi },
  };
  for (const [sentence, { owner, want }] of Object.entries(cases)) {
    test(sentence, () => {
      const { ownerReferences } = buildStateClaim(owner, STORAGE, 'x4b2z').metadata;
      const rest = { apiVersion: 'kubevirt.io/v1', controller: true, blockOwnerDeletion: true };
      assert.deepEqual(ownerReferences, [{ ...rest, ...want }]);
    });
  }
});

describe('S18: the claim is found again for the VM', () => {
  const names = ['db', 'db.eu.example.com', 'a'.repeat(63), `${'a'.repeat(32)}.${'b'.repeat(30)}`];
  for (const name of names) {
    test(name, () => {
      const vm = aVm(name);
      const claim = storedOf(buildStateClaim(vm, STORAGE, stateSuffixOf('vmi-uid')));
      assert.equal(findStateClaim([claim], stateOwnerOf(vm)), claim);
      assert(stateIndexKeysOf(claim).includes(stateIndexKey(vm.metadata)));
      // Neither another VM nor the next VM of that name finds it.
      assert.equal(findStateClaim([claim], { ...stateOwnerOf(vm), ownerUid: 'next-uid' }), undefined);
      assert.equal(findStateClaim([claim], { vmName: 'web', ownerUid: 'vm-uid' }), undefined);
    });
  }
});

function storedOf(claim: PersistentVolumeClaim): Stored<PersistentVolumeClaim> {
  const { name = '' } = claim.metadata;
  return { ...claim, metadata: { ...claim.metadata, ...identity(name, 'claim-uid') } };
}

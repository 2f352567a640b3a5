/**
 * Tests the storage of persistent state. S1 to S8 are the cases of KubeVirt's own tests. Where seed 001
 * (docs/seeds.md) differs from KubeVirt, we follow the seed:
 *
 *   S1  a configured class without a profile   upstream ReadWriteMany, here ReadWriteOnce; and it must exist
 *   S6  Filesystem with both access modes      upstream ReadWriteMany, here ReadWriteOnce
 *   S8  only Block                             upstream never, here Block
 *   S10 changed block tracking                 upstream 512Mi more; not supported here
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ClaimPropertySet, StorageProfile } from '#api/storage/storage-profile.ts';
import { selectStorage, type StateStorage } from '#controllers/shared/persistent-state/select-storage.ts';
import type { StorageClass } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

const VIRT = { 'storageclass.kubevirt.io/is-default-virt-class': 'true' };
const CLUSTER = { 'storageclass.kubernetes.io/is-default-class': 'true' };
const OLD_CLUSTER = { 'storageclass.beta.kubernetes.io/is-default-class': 'true' };
const NEW = '2026-01-01T00:00:00Z';
const OLD = '2025-01-01T00:00:00Z';

function aClass(name: string, annotations?: Record<string, string>, creationTimestamp = NEW): Stored<StorageClass> {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name, uid: `${name}-uid`, resourceVersion: '1', creationTimestamp, annotations },
    provisioner: 'example.com/disks',
  };
}

function aProfile(name: string, sets?: ClaimPropertySet[], minimum?: string): StorageProfile {
  const annotations = minimum === undefined ? undefined : { 'cdi.kubevirt.io/minimumSupportedPvcSize': minimum };
  return {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'StorageProfile',
    metadata: { name, annotations },
    spec: {},
    status: { claimPropertySets: sets },
  };
}

const files = (...accessModes: ClaimPropertySet['accessModes']): ClaimPropertySet => ({
  volumeMode: 'Filesystem',
  accessModes,
});
const blocks = (...accessModes: ClaimPropertySet['accessModes']): ClaimPropertySet => ({
  volumeMode: 'Block',
  accessModes,
});

const NONE =
  'no default storage class found: set spec.configuration.vmStateStorageClass of the KubeVirt object, or annotate a StorageClass with storageclass.kubevirt.io/is-default-virt-class=true or storageclass.kubernetes.io/is-default-class=true';
const MISSING =
  'storageclasses.storage.k8s.io "myfave" not found: it is set in spec.configuration.vmStateStorageClass of the KubeVirt object';

describe('the class', () => {
  const plain = ['a', 'b', 'c', 'd'].map((name) => aClass(name));
  const cases: Record<string, { classes: Stored<StorageClass>[]; configured?: string; want: string }> = {
    'S1: is the configured one': { classes: [...plain, aClass('myfave')], configured: 'myfave', want: 'myfave' },
    'is the configured one rather than a default': {
      classes: [aClass('v', VIRT), aClass('k', CLUSTER), aClass('myfave')],
      configured: 'myfave',
      want: 'myfave',
    },
    'is not replaced by a default if the configured one does not exist': {
      classes: [aClass('k', CLUSTER)],
      configured: 'myfave',
      want: MISSING,
    },
    'S2: is the default of the cluster': { classes: [...plain, aClass('k', CLUSTER)], want: 'k' },
    'is the default if the configured name is empty': {
      classes: [aClass('k', CLUSTER)],
      configured: '',
      want: 'k',
    },
    'is the default of the cluster by the old annotation': { classes: [...plain, aClass('k', OLD_CLUSTER)], want: 'k' },
    'S3: is the default for VMs rather than that of the cluster': {
      classes: [aClass('k', CLUSTER), aClass('v', VIRT, OLD)],
      want: 'v',
    },
    'is the default for VMs if the cluster has none': { classes: [...plain, aClass('v', VIRT)], want: 'v' },
    'S4: is missing without a default': { classes: plain, want: NONE },
    'is missing without any class': { classes: [], want: NONE },
    'is not a class whose default annotation is false': {
      classes: [aClass('k', { 'storageclass.kubernetes.io/is-default-class': 'false' })],
      want: NONE,
    },
    'is the newest of several defaults': {
      classes: [aClass('a', CLUSTER, OLD), aClass('b', CLUSTER, NEW), aClass('c', CLUSTER, OLD)],
      want: 'b',
    },
    'is the newest of several defaults for VMs': {
      classes: [aClass('b', VIRT, NEW), aClass('a', VIRT, OLD)],
      want: 'b',
    },
    'is the first by name of several with the same age': {
      classes: [aClass('c', CLUSTER), aClass('a', CLUSTER), aClass('b', CLUSTER)],
      want: 'a',
    },
  };
  for (const [sentence, { classes, configured, want }] of Object.entries(cases)) {
    test(sentence, () => {
      const selected = selectStorage({ classes, profiles: [], configured });
      assert.equal('problem' in selected ? selected.problem : selected.storageClassName, want);
    });
  }
});

interface ModeCase {
  readonly profiles: StorageProfile[];
  readonly configured?: string;
  readonly want: readonly [StateStorage['volumeMode'], StateStorage['accessMode']];
}

describe('the modes', () => {
  const of = (...sets: ClaimPropertySet[]) => [aProfile('fast', sets)];
  const cases: Record<string, ModeCase> = {
    'S5: without a profile': { profiles: [], want: ['Filesystem', 'ReadWriteOnce'] },
    'S1: without a profile, of a configured class': {
      profiles: [],
      configured: 'fast',
      want: ['Filesystem', 'ReadWriteOnce'],
    },
    'S5: of a profile without sets': { profiles: [aProfile('fast')], want: ['Filesystem', 'ReadWriteOnce'] },
    'S5: of a profile with an empty list of sets': { profiles: of(), want: ['Filesystem', 'ReadWriteOnce'] },
    'not of the profile of another class': {
      profiles: [aProfile('slow', [blocks('ReadWriteMany')])],
      want: ['Filesystem', 'ReadWriteOnce'],
    },
    'S6: ReadWriteOnce of several': {
      profiles: of(files('ReadWriteMany', 'ReadWriteOnce')),
      want: ['Filesystem', 'ReadWriteOnce'],
    },
    'ReadWriteOnce of several sets': {
      profiles: of(files('ReadWriteMany'), files('ReadWriteOnce')),
      want: ['Filesystem', 'ReadWriteOnce'],
    },
    'the only access mode': { profiles: of(files('ReadWriteMany')), want: ['Filesystem', 'ReadWriteMany'] },
    'S7: the only access mode of a configured class': {
      profiles: of(files('ReadWriteOnce')),
      configured: 'fast',
      want: ['Filesystem', 'ReadWriteOnce'],
    },
    'Filesystem of several volume modes': {
      profiles: of(blocks('ReadWriteOnce'), files('ReadWriteMany')),
      want: ['Filesystem', 'ReadWriteMany'],
    },
    'S8: Block if there is no Filesystem': {
      profiles: of(blocks('ReadWriteMany', 'ReadWriteOnce')),
      want: ['Block', 'ReadWriteOnce'],
    },
    'S8: Block with the only access mode if there is no Filesystem': {
      profiles: of(blocks('ReadWriteMany')),
      want: ['Block', 'ReadWriteMany'],
    },
    'a writable access mode of several': {
      profiles: of(files('ReadOnlyMany', 'ReadWriteMany')),
      want: ['Filesystem', 'ReadWriteMany'],
    },
    'ReadWriteOncePod if there is no other writable mode': {
      profiles: of(files('ReadWriteOncePod', 'ReadOnlyMany')),
      want: ['Filesystem', 'ReadWriteOncePod'],
    },
    'Block if Filesystem is read-only': {
      profiles: of(files('ReadOnlyMany'), blocks('ReadWriteOnce')),
      want: ['Block', 'ReadWriteOnce'],
    },
    'as without a profile if all modes are read-only': {
      profiles: of(files('ReadOnlyMany')),
      want: ['Filesystem', 'ReadWriteOnce'],
    },
    'as without a profile if a set has no access modes': {
      profiles: of(blocks()),
      want: ['Filesystem', 'ReadWriteOnce'],
    },
  };
  for (const [sentence, { profiles, configured, want }] of Object.entries(cases)) {
    test(sentence, () => {
      const selected = selectStorage({ classes: [aClass('fast', CLUSTER)], profiles, configured });
      assert(!('problem' in selected));
      assert.deepEqual([selected.volumeMode, selected.accessMode], want);
    });
  }
});

describe('the size', () => {
  const cases: Record<string, { minimum?: string; want: string }> = {
    'is 10Mi by default': { want: '10Mi' },
    'is the minimum of the storage': { minimum: '1Gi', want: '1Gi' },
    'is 10Mi if the minimum is smaller': { minimum: '1Mi', want: '10Mi' },
    'is written as 10Mi if the minimum is equal': { minimum: '10240Ki', want: '10Mi' },
    'is 10Mi if the minimum is not a quantity': { minimum: 'large', want: '10Mi' },
    'is 10Mi if the minimum is negative': { minimum: '-5Gi', want: '10Mi' },
  };
  for (const [sentence, { minimum, want }] of Object.entries(cases)) {
    test(sentence, () => {
      const profiles = [aProfile('slow', [], '7Gi'), aProfile('fast', [], minimum)];
      const selected = selectStorage({ classes: [aClass('fast', VIRT)], profiles, configured: undefined });
      assert.equal('problem' in selected ? selected.problem : selected.size, want);
    });
  }
});

/** Tests with which claims and volumes a protected VM would be lost: its disks and its persistent state. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PROTECTION_LABEL } from '#api/protection/delete-protection.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { vmOwnerReference } from '#api/virtual-machine/owner.ts';
import type { ChangeListener, Informer } from '#client/informer.ts';
import { ObjectCache } from '#client/object-cache.ts';
import { objectKey } from '#client/object-key.ts';
import { stateIndexKey } from '#controllers/shared/persistent-state/claims-by-state.ts';
import { ProtectedDisks } from '#controllers/protection/protected-disks.ts';
import { ProtectedVms } from '#controllers/protection/protected-vms.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { KubeObject, ObjectMeta, Stored } from '#kube/meta.ts';

const LONG = 'a'.repeat(63);
const identity = (name: string) => ({
  namespace: 'ns',
  name,
  uid: `${name}-uid`,
  resourceVersion: '1',
  creationTimestamp: '2026-01-01T00:00:00Z',
});

function aVm(name: string, metadata: ObjectMeta = { labels: { [PROTECTION_LABEL]: 'true' } }): Stored<VirtualMachine> {
  const volumes = [{ name: 'root', persistentVolumeClaim: { claimName: `${name}-root` } }];
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { ...identity(name), ...metadata },
    spec: { template: { spec: { domain: {}, volumes } } },
  };
}

function aClaim(name: string, metadata: ObjectMeta = {}): Stored<PersistentVolumeClaim> {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { ...identity(name), ...metadata },
    spec: { volumeName: `${name}-pv` },
  };
}

/** Builds the volume to which the claim is bound. */
function volumeOf({ metadata: { namespace, name, uid } }: Stored<PersistentVolumeClaim>): Stored<PersistentVolume> {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { ...identity(`${name}-pv`), namespace: undefined },
    spec: { capacity: {}, accessModes: [], claimRef: { namespace, name, uid } },
  };
}

function informerOf<T extends KubeObject>(objects: readonly Stored<T>[]): Informer<T> {
  const cache = new ObjectCache<T>();
  for (const object of objects) cache.put(objectKey(object), object);
  return Object.assign(cache, {
    onChange(listener: ChangeListener<T>) {
      for (const object of objects) listener(objectKey(object), { old: undefined, new: object });
      return () => undefined;
    },
  }) as unknown as Informer<T>;
}

function disksOf(claims: readonly Stored<PersistentVolumeClaim>[]): ProtectedDisks {
  const vms = informerOf([aVm('db'), aVm('web'), aVm(LONG), aVm('free', {})]);
  const protectedVms = new ProtectedVms(vms, { signal: new AbortController().signal });
  return new ProtectedDisks(protectedVms, informerOf(claims), informerOf(claims.map(volumeOf)));
}

const mark = (key: string) => ({ annotations: { [`persistent-state-for-${key}`]: 'true' } });
const label = (key: string) => ({ labels: { 'persistent-state-for': key } });
const owner = (uid: string, controller = true) => ({
  ownerReferences: [{ ...vmOwnerReference({ metadata: { name: 'db', uid } }), controller }],
});
const KEY_OF_LONG = stateIndexKey({ name: LONG });

const cases: Record<string, { claim: Stored<PersistentVolumeClaim>; want: readonly string[] }> = {
  'a disk': { claim: aClaim('db-root'), want: ['ns/db'] },
  'the state that the VM controls': {
    claim: aClaim('persistent-state-for-db-x4b2z', { ...mark('db'), ...owner('db-uid') }),
    want: ['ns/db'],
  },
  'a claim that the VM controls without a mark': {
    claim: aClaim('persistent-state-for-db-x4b2z', owner('db-uid')),
    want: ['ns/db'],
  },
  'state without an owner, by its annotation': { claim: aClaim('kept', mark('db')), want: ['ns/db'] },
  'state without an owner, by its label': { claim: aClaim('kept', label('db')), want: ['ns/db'] },
  'state of an old version, by its name': { claim: aClaim('persistent-state-for-db'), want: ['ns/db'] },
  'state of a VM with a long name': { claim: aClaim('kept', mark(KEY_OF_LONG)), want: [`ns/${LONG}`] },
  'state of an old version of a VM with a long name': {
    claim: aClaim(`persistent-state-for-${LONG}`),
    want: [`ns/${LONG}`],
  },
  'not the state of an earlier VM of that name': {
    claim: aClaim('persistent-state-for-db', { ...mark('db'), ...owner('old-uid') }),
    want: [],
  },
  'not a claim with the marks of two VMs, which neither uses': {
    claim: aClaim('kept', { ...mark('db'), ...label('web') }),
    want: [],
  },
  'not state of a VM that is not protected': { claim: aClaim('kept', mark('free')), want: [] },
  'not state in another namespace': { claim: aClaim('kept', { ...mark('db'), namespace: 'other' }), want: [] },
  'not any other claim': { claim: aClaim('kept'), want: [] },
  'the disk of one VM that is marked as the state of another': {
    claim: aClaim('web-root', mark('db')),
    want: ['ns/db', 'ns/web'],
  },
};

describe('a protected VM would be lost with', () => {
  for (const [sentence, { claim, want }] of Object.entries(cases)) {
    test(sentence, () => {
      const disks = disksOf([claim]);
      assert.deepEqual(disks.vmsOfClaim(claim), want);
      assert.deepEqual(disks.vmsOfVolume(volumeOf(claim)), want);
    });
  }
});

test('claims are found by the state that they may hold', () => {
  const claims = [
    aClaim('kept', mark('db')),
    aClaim('persistent-state-for-db'),
    aClaim('other', mark('web')),
    aClaim('persistent-state-for-db-x4b2z', owner('db-uid')),
    aClaim('elsewhere', { ...mark('db'), namespace: 'other' }),
  ];
  const found = disksOf(claims).withState(stateIndexKey({ namespace: 'ns', name: 'db' }));
  assert.deepEqual(found.toSorted(), ['ns/kept', 'ns/persistent-state-for-db', 'ns/persistent-state-for-db-x4b2z']);
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { describeConflicts, findStateConflicts, describeHolder } from '#api/storage/state-conflict.ts';
import { findStateClaim, stateKeyOf, stateKeysOfClaim } from '#api/storage/persistent-state.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { ObjectMeta, OwnerReference, Stored } from '#kube/meta.ts';

type Claim = Stored<PersistentVolumeClaim>;

const NOW = '2026-01-01T00:00:00Z';
const OLDER = '2025-01-01T00:00:00Z';
const LEGACY = 'persistent-state-for-db';
const OWNER = { vmName: 'db', ownerUid: 'db-uid' };

const ownedBy = (
  kind: string,
  name: string,
  more: Partial<OwnerReference> = {},
): Pick<ObjectMeta, 'ownerReferences'> => {
  const apiVersion = kind.startsWith('VirtualMachine') ? 'kubevirt.io/v1' : 'v1';
  return { ownerReferences: [{ apiVersion, kind, name, uid: `${name}-uid`, controller: true, ...more }] };
};
const OWN = ownedBy('VirtualMachine', 'db');
const BACKUP = ownedBy('ConfigMap', 'backup');
const stateAnnotation = (vmName = 'db') => ({ annotations: { [`persistent-state-for-${vmName}`]: 'true' } });
const stateLabel = (vmName = 'db') => ({ labels: { 'persistent-state-for': vmName } });
const supersedingAnnotations = (uid: string) => ({
  annotations: { ...stateAnnotation().annotations, 'selfsame.io/supersedes': uid },
});

function aClaim(name: string, metadata: ObjectMeta = {}): Claim {
  const identity = { namespace: 'ns', name, uid: `${name}-uid`, resourceVersion: '1', creationTimestamp: NOW };
  return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { ...identity, ...metadata }, spec: {} };
}

interface Case {
  readonly claims: readonly Claim[];
  readonly vmName?: string;
  readonly want?: readonly string[];
}

const cases: Record<string, Case> = {
  'no claim without candidates': { claims: [] },
  'a claim with the annotation and another owner': {
    claims: [aClaim('a', { ...stateAnnotation(), ...BACKUP })],
    want: ['a'],
  },
  'a claim with the label and another owner': {
    claims: [aClaim('a', { ...stateLabel(), ...BACKUP })],
    want: ['a'],
  },
  'a claim with the legacy name and another owner': { claims: [aClaim(LEGACY, BACKUP)], want: [LEGACY] },
  'a claim with another owner that does not control it': {
    claims: [aClaim('a', { ...stateAnnotation(), ...ownedBy('ConfigMap', 'backup', { controller: false }) })],
    want: ['a'],
  },
  'a claim that the VM owns without controlling it': {
    claims: [aClaim('a', { ...stateAnnotation(), ...ownedBy('VirtualMachine', 'db', { controller: false }) })],
    want: ['a'],
  },
  'a claim of an earlier VM of the same name': {
    claims: [aClaim('a', { ...stateAnnotation(), ...ownedBy('VirtualMachine', 'db', { uid: 'old-uid' }) })],
    want: ['a'],
  },
  'a claim without an owner that is also marked for another VM': {
    claims: [aClaim('a', { ...stateAnnotation(), ...stateLabel('web') })],
    want: ['a'],
  },
  'no claim that the VM may use': { claims: [aClaim('a', stateAnnotation())] },
  'no claim of another owner if the VM has its own': {
    claims: [
      aClaim('own', { ...OWN, ...stateAnnotation(), creationTimestamp: OLDER }),
      aClaim('a', { ...stateAnnotation(), ...BACKUP }),
    ],
  },
  'no claim of another owner if there is one without an owner': {
    claims: [aClaim('free', stateAnnotation()), aClaim('a', { ...stateAnnotation(), ...BACKUP })],
  },
  'no unmarked claim of another owner': {
    claims: [aClaim('a', BACKUP), aClaim('b', { ...stateAnnotation('web'), ...BACKUP })],
  },
  'no claim whose annotation is false': {
    claims: [
      aClaim('a', { ...BACKUP, annotations: { [LEGACY]: 'false' } }),
      aClaim(LEGACY, { ...BACKUP, annotations: { [LEGACY]: 'false' } }),
    ],
  },
  'no claim of a restore, which hands it over or deletes it': {
    claims: [
      aClaim('a', {
        ...stateAnnotation(),
        ...ownedBy('VirtualMachineRestore', 'r', { apiVersion: 'snapshot.kubevirt.io/v1beta1' }),
      }),
    ],
  },
  'a claim of a third-party kind named VirtualMachineRestore': {
    claims: [
      aClaim('a', { ...stateAnnotation(), ...ownedBy('VirtualMachineRestore', 'r', { apiVersion: 'example.com/v1' }) }),
    ],
    want: ['a'],
  },
  'no claim that is being deleted': {
    claims: [aClaim('a', { ...stateAnnotation(), ...BACKUP, deletionTimestamp: NOW })],
  },
  'no superseded claim': {
    claims: [
      aClaim('a', { ...stateAnnotation(), ...BACKUP }),
      aClaim('b', { ...OWN, ...supersedingAnnotations('a-uid'), deletionTimestamp: NOW }),
    ],
  },
  'all conflicting claims, the newest first': {
    claims: [
      aClaim('b', { ...stateAnnotation(), ...BACKUP }),
      aClaim('old', { ...stateLabel(), ...BACKUP, creationTimestamp: OLDER }),
      aClaim('a', { ...stateAnnotation(), ...BACKUP }),
    ],
    want: ['a', 'b', 'old'],
  },
  'no claim of another VM whose current name looks like the legacy name': {
    vmName: 'db-x4b2z',
    claims: [aClaim('persistent-state-for-db-x4b2z', { ...stateAnnotation('db'), ...OWN })],
  },
  'no unmarked target claim of a migration of another VM': {
    vmName: 'db-x4b2z',
    claims: [aClaim('persistent-state-for-db-x4b2z', OWN)],
  },
};

describe('the VM does not start because of', () => {
  for (const [sentence, { claims, vmName = 'db', want = [] }] of Object.entries(cases)) {
    test(sentence, () => {
      const owner = { vmName, ownerUid: `${vmName}-uid` };
      const names = (all: readonly Claim[]) => findStateConflicts(all, owner).map(({ metadata }) => metadata.name);
      assert.deepEqual(names(claims), want);
      assert.deepEqual(names(claims.toReversed()), want);
      assert.deepEqual(names(claims.filter((claim) => stateKeysOfClaim(claim).includes(stateKeyOf(vmName)))), want);
    });
  }
});

describe('of several usable claims, the VM uses', () => {
  const several: Record<string, { claims: readonly Claim[]; want?: string }> = {
    'its own before a newer claim without an owner': {
      claims: [
        aClaim('own', { ...OWN, ...stateAnnotation(), creationTimestamp: OLDER }),
        aClaim('free', stateAnnotation()),
      ],
      want: 'own',
    },
    'its own with the legacy name before a marked claim without an owner': {
      claims: [aClaim(LEGACY, OWN), aClaim('free', stateAnnotation())],
      want: LEGACY,
    },
    'its own, even if a claim without an owner supersedes it': {
      claims: [aClaim('own', { ...OWN, ...stateAnnotation() }), aClaim('free', supersedingAnnotations('own-uid'))],
      want: 'own',
    },
    'a claim without an owner if its own is being deleted': {
      claims: [
        aClaim('own', { ...OWN, ...stateAnnotation(), deletionTimestamp: NOW }),
        aClaim('free', stateAnnotation()),
      ],
      want: 'free',
    },
    'no claim that its own has superseded': {
      claims: [
        aClaim('own', { ...OWN, ...supersedingAnnotations('free-uid'), deletionTimestamp: NOW }),
        aClaim('free', stateAnnotation()),
      ],
    },
    'the newest claim without an owner': {
      claims: [aClaim('a', { ...stateAnnotation(), creationTimestamp: OLDER }), aClaim('b', stateLabel())],
      want: 'b',
    },
  };
  for (const [sentence, { claims, want }] of Object.entries(several)) {
    test(sentence, () => {
      assert.equal(findStateClaim(claims, OWNER)?.metadata.name, want);
      assert.equal(findStateClaim(claims.toReversed(), OWNER)?.metadata.name, want);
    });
  }
});

describe('the holder', () => {
  const holders: Record<string, { metadata: ObjectMeta; want: string }> = {
    'is the owner': { metadata: BACKUP, want: 'belongs to ConfigMap "backup"' },
    'is the owner that controls it': {
      metadata: {
        ownerReferences: [
          { apiVersion: 'v1', kind: 'Secret', name: 's', uid: 's' },
          { apiVersion: 'v1', kind: 'ConfigMap', name: 'c', uid: 'c', controller: true },
        ],
      },
      want: 'belongs to ConfigMap "c"',
    },
    'is an earlier VM': {
      metadata: ownedBy('VirtualMachine', 'db', { uid: 'old-uid' }),
      want: 'belongs to VirtualMachine "db" of another uid (old-uid)',
    },
    'is the VM itself, which does not control it': {
      metadata: ownedBy('VirtualMachine', 'db', { controller: false }),
      want: 'belongs to VirtualMachine "db" without being controlled by it',
    },
    'is another VM by its mark': {
      metadata: { ...stateAnnotation(), ...stateLabel('web') },
      want: 'is also marked for VirtualMachine "web"',
    },
  };
  for (const [sentence, { metadata, want }] of Object.entries(holders)) {
    test(sentence, () => assert.equal(describeHolder(aClaim('a', metadata), OWNER), want));
  }
});

test('the message names the claim, its owner, both remedies, and further claims', () => {
  const claims = ['a', 'b', 'c', 'd', 'e'].map((name) => aClaim(name, { ...stateAnnotation(), ...BACKUP }));
  const subject = { ...OWNER, namespace: 'prod' };
  const one =
    'Cannot start VirtualMachine "db": PersistentVolumeClaim "a" is marked as its persistent state, but belongs to ' +
    'ConfigMap "backup"; hand it over to this VM with "virtctl state adopt db --claim a -n prod", or remove the mark ' +
    'with "virtctl state release db --claim a -n prod"';
  assert.equal(describeConflicts(claims.slice(0, 1), subject), one);
  assert.equal(describeConflicts(claims, subject), `${one}; the same applies to "b", "c", "d" and others`);
  assert.match(
    describeConflicts(claims.slice(0, 1), { ...subject, isAlone: true }),
    /^Cannot start VirtualMachineInstance "db": .*; remove the ownerReferences of the claim/,
  );
});

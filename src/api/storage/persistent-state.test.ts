/**
 * Tests which VMs need persistent state, the names of its claims, and the search for them (cases S11 to S18 of
 * KubeVirt's own tests).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  findStateClaim,
  isUnownedStateOf,
  legacyStateClaimName,
  needsState,
  stateAnnotationOf,
  stateClaimName,
  stateKeyOf,
  stateKeysOfClaim,
  stateOwnerOf,
  stateSuffixOf,
} from '#api/storage/persistent-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { ObjectMeta, OwnerReference, Stored } from '#kube/meta.ts';

const NOW = '2026-01-01T00:00:00Z';
const OLDER = '2025-01-01T00:00:00Z';
const LABEL = 'persistent-state-for';

describe('persistent state is needed', () => {
  const tpm = (value: NonNullable<VmiSpec['domain']['devices']>['tpm']) => ({ devices: { tpm: value } });
  const efi = (persistent?: boolean) => ({ firmware: { bootloader: { efi: { persistent } } } });
  const cases: Record<string, { domain: VmiSpec['domain']; want: boolean }> = {
    'not by an empty domain': { domain: {}, want: false },
    'not by a TPM that is not persistent': { domain: tpm({}), want: false },
    'by a persistent TPM': { domain: tpm({ persistent: true }), want: true },
    'by a persistent TPM that is enabled': { domain: tpm({ persistent: true, enabled: true }), want: true },
    'not by a persistent TPM that is disabled': { domain: tpm({ persistent: true, enabled: false }), want: false },
    'not by EFI without persistence': { domain: efi(), want: false },
    'not by EFI with persistence false': { domain: efi(false), want: false },
    'by persistent EFI': { domain: efi(true), want: true },
    'by persistent EFI and a persistent TPM': { domain: { ...efi(true), ...tpm({ persistent: true }) }, want: true },
    'by persistent EFI with a disabled TPM': {
      domain: { ...efi(true), ...tpm({ persistent: true, enabled: false }) },
      want: true,
    },
  };
  for (const [sentence, { domain, want }] of Object.entries(cases)) {
    test(sentence, () => assert.equal(needsState({ domain }), want));
  }
});

describe('names', () => {
  const LONG = 'a'.repeat(63);
  /** `printf <name> | sha256sum`. */
  const cases: Record<string, { vmName: string; want: string }> = {
    'a short name is its key': { vmName: 'db', want: 'db' },
    'a short name with dots is its key': { vmName: 'db.eu.example.com', want: 'db.eu.example.com' },
    'a name of 42 characters is its key': { vmName: 'a'.repeat(42), want: 'a'.repeat(42) },
    'a name of 43 characters is shortened': { vmName: 'a'.repeat(43), want: `${'a'.repeat(33)}-66d34fba` },
    'a name of 63 characters is shortened': { vmName: LONG, want: `${'a'.repeat(33)}-7d3e74a0` },
    'a shortened name does not end with a dot': {
      vmName: `${'a'.repeat(32)}.${'b'.repeat(20)}`,
      want: `${'a'.repeat(32)}-f227bfa6`,
    },
  };
  /** Valid names of claims. */
  const DNS = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
  for (const [sentence, { vmName, want }] of Object.entries(cases)) {
    test(sentence, () => {
      const key = stateKeyOf(vmName);
      assert.equal(key, want);
      assert.equal(stateAnnotationOf(vmName), `persistent-state-for-${key}`);
      assert.equal(stateClaimName(vmName, 'x4b2z'), `persistent-state-for-${key}-x4b2z`);
      assert.ok(stateAnnotationOf(vmName).length <= 63);
      assert.match(stateClaimName(vmName, 'x4b2z'), DNS);
    });
  }

  test('long names with the same beginning have different keys', () => {
    assert.notEqual(stateKeyOf(LONG), stateKeyOf(`${LONG.slice(1)}b`));
  });

  test('a suffix is the same for the same uid only', () => {
    assert.match(stateSuffixOf('u1'), /^[0-9a-f]{5}$/);
    assert.equal(stateSuffixOf('u1'), stateSuffixOf('u1'));
    assert.notEqual(stateSuffixOf('u1'), stateSuffixOf('u2'));
  });
});

const ownerReferencesTo = (uid: string, more: Partial<OwnerReference> = {}): OwnerReference[] => [
  { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid, controller: true, ...more },
];
const stateAnnotation = (vmName = 'db') => ({
  annotations: { [`persistent-state-for-${stateKeyOf(vmName)}`]: 'true' },
});
const stateLabel = (vmName = 'db') => ({ labels: { [LABEL]: stateKeyOf(vmName) } });
const OWN = { ownerReferences: ownerReferencesTo('db-uid') };
const DELETING = { deletionTimestamp: NOW };
const supersedingAnnotations = (uid: string) => ({
  annotations: { ...stateAnnotation().annotations, 'selfsame.io/supersedes': uid },
});

function aClaim(name: string, metadata: ObjectMeta = {}): Stored<PersistentVolumeClaim> {
  const identity = { namespace: 'ns', name, uid: `${name}-uid`, resourceVersion: '1', creationTimestamp: NOW };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { ...identity, ...metadata },
    spec: {},
  };
}

interface Case {
  readonly claims: readonly Stored<PersistentVolumeClaim>[];
  readonly vmName?: string;
  readonly want?: string;
}

const LEGACY = 'persistent-state-for-db';
const LONG_VM = 'a'.repeat(63);

const cases: Record<string, Case> = {
  'no claim without candidates': { claims: [] },
  'no claim among disks': { claims: [aClaim('root', OWN), aClaim('db')] },
  'the claim with the annotation': {
    claims: [aClaim('root', OWN), aClaim('a', { ...OWN, ...stateAnnotation() })],
    want: 'a',
  },
  'the claim with the label': { claims: [aClaim('a', { ...OWN, ...stateLabel() })], want: 'a' },
  'no claim whose annotation is false': {
    claims: [aClaim('a', { ...OWN, annotations: { 'persistent-state-for-db': 'false' } })],
  },
  'a claim without an owner': { claims: [aClaim('a', stateAnnotation())], want: 'a' },
  'a claim with an empty list of owners': {
    claims: [aClaim('a', { ...stateAnnotation(), ownerReferences: [] })],
    want: 'a',
  },
  'no claim of an earlier VM of the same name': {
    claims: [aClaim('a', { ...stateAnnotation(), ...stateLabel(), ownerReferences: ownerReferencesTo('old-uid') })],
  },
  'no claim that the VM owns without controlling it': {
    claims: [
      aClaim('a', { ...stateAnnotation(), ownerReferences: ownerReferencesTo('db-uid', { controller: false }) }),
    ],
  },
  'no claim without an owner that is marked for another VM': {
    claims: [
      aClaim('a', { ...stateAnnotation(), ...stateLabel('web') }),
      aClaim('b', { ...stateAnnotation('web'), ...stateLabel() }),
    ],
  },
  'its own claim, even if it is marked for another VM': {
    claims: [aClaim('a', { ...OWN, ...stateAnnotation(), ...stateLabel('web') })],
    want: 'a',
  },
  'no claim of another VM': { claims: [aClaim('a', stateAnnotation('web')), aClaim('b', stateLabel('web'))] },
  'the newest of several claims': {
    claims: [
      aClaim('a', { ...OWN, ...stateAnnotation(), creationTimestamp: OLDER }),
      aClaim('b', { ...OWN, ...stateLabel() }),
    ],
    want: 'b',
  },
  'the first by name of claims of the same age': {
    claims: [aClaim('b', { ...OWN, ...stateAnnotation() }), aClaim('a', { ...OWN, ...stateAnnotation() })],
    want: 'a',
  },
  'no claim that is being deleted': { claims: [aClaim('a', { ...OWN, ...stateAnnotation(), ...DELETING })] },
  'another claim if the newest is being deleted': {
    claims: [
      aClaim('a', { ...OWN, ...stateAnnotation(), ...DELETING }),
      aClaim('b', { ...OWN, ...stateAnnotation(), creationTimestamp: OLDER }),
    ],
    want: 'b',
  },
  'the claim with the legacy name': { claims: [aClaim(LEGACY, OWN)], want: LEGACY },
  'the claim with the legacy name and no owner': { claims: [aClaim(LEGACY)], want: LEGACY },
  'a marked claim before the legacy name': {
    claims: [aClaim(LEGACY, OWN), aClaim('a', { ...OWN, ...stateAnnotation(), creationTimestamp: OLDER })],
    want: 'a',
  },
  'no claim with the legacy name of an earlier VM': {
    claims: [aClaim(LEGACY, { ownerReferences: ownerReferencesTo('old-uid') })],
  },
  'no claim with the legacy name that is being deleted': { claims: [aClaim(LEGACY, { ...OWN, ...DELETING })] },
  'no claim of another VM whose current name looks like the legacy name': {
    vmName: 'db-x4b2z',
    claims: [
      aClaim('persistent-state-for-db-x4b2z', {
        ...stateAnnotation('db'),
        ownerReferences: ownerReferencesTo('other-uid'),
      }),
      aClaim('persistent-state-for-db-x4b2z', stateAnnotation('db')),
    ],
  },
  'no unmarked target claim of a migration': { claims: [aClaim('persistent-state-for-db-x4b2z', OWN)] },
  'the superseding claim instead of the superseded one': {
    claims: [
      aClaim('old', { ...OWN, ...stateAnnotation() }),
      aClaim('new', { ...OWN, ...supersedingAnnotations('old-uid'), creationTimestamp: OLDER }),
    ],
    want: 'new',
  },
  'no claim that is superseded by one that is being deleted': {
    claims: [aClaim(LEGACY, OWN), aClaim('new', { ...OWN, ...supersedingAnnotations(`${LEGACY}-uid`), ...DELETING })],
  },
  'a claim that supersedes itself': {
    claims: [aClaim('a', { ...OWN, ...supersedingAnnotations('a-uid') })],
    want: 'a',
  },
  'a claim that is superseded only by a claim of another owner': {
    claims: [
      aClaim('a', { ...OWN, ...stateAnnotation() }),
      aClaim('b', { ...supersedingAnnotations('a-uid'), ownerReferences: ownerReferencesTo('old-uid') }),
    ],
    want: 'a',
  },
  'a claim that is superseded only by an unmarked claim': {
    claims: [
      aClaim('a', { ...OWN, ...stateAnnotation() }),
      aClaim('b', { ...OWN, annotations: { 'selfsame.io/supersedes': 'a-uid' } }),
    ],
    want: 'a',
  },
  'the claim of a VM with a long name': {
    vmName: LONG_VM,
    claims: [aClaim('a', { ...OWN, ...stateAnnotation(LONG_VM) })],
    want: 'a',
  },
  'the claim with the legacy name of a VM with a long name': {
    vmName: LONG_VM,
    claims: [aClaim(legacyStateClaimName(LONG_VM), OWN)],
    want: legacyStateClaimName(LONG_VM),
  },
  'the claim of a VM with dots in its name': {
    vmName: 'db.eu',
    claims: [aClaim('a', { ...OWN, ...stateLabel('db.eu') }), aClaim('b', { ...OWN, ...stateAnnotation() })],
    want: 'a',
  },
};

describe('findStateClaim returns', () => {
  for (const [sentence, { claims, vmName = 'db', want }] of Object.entries(cases)) {
    test(sentence, () => {
      const owner = { vmName, ownerUid: 'db-uid' };
      assert.equal(findStateClaim(claims, owner)?.metadata.name, want);
      // A lookup by key gives the same result.
      const indexed = claims.filter((claim) => stateKeysOfClaim(claim).includes(stateKeyOf(vmName)));
      assert.equal(findStateClaim(indexed, owner)?.metadata.name, want);
    });
  }
});

describe('a claim without an owner is the state of the VM', () => {
  const unowned: Record<string, { claim: Stored<PersistentVolumeClaim>; want: boolean }> = {
    'by a mark': { claim: aClaim('a', stateAnnotation()), want: true },
    'by its legacy name': { claim: aClaim(LEGACY), want: true },
    'not if it has an owner': { claim: aClaim(LEGACY, OWN), want: false },
    'not if it is marked for another VM': { claim: aClaim(LEGACY, stateLabel('web')), want: false },
    'not without a mark': { claim: aClaim('db'), want: false },
  };
  for (const [sentence, { claim, want }] of Object.entries(unowned)) {
    test(sentence, () => assert.equal(isUnownedStateOf(claim, 'db'), want));
  }
});

describe('the owner of the state is', () => {
  const identity = { namespace: 'ns', name: 'db', resourceVersion: '1', creationTimestamp: NOW };
  const aVm = (ownerReferences?: OwnerReference[]): Stored<VirtualMachine> => ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { ...identity, uid: 'vm-uid', ownerReferences },
    spec: { template: {} },
  });
  const aVmi = (ownerReferences?: OwnerReference[]): Stored<VirtualMachineInstance> => ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { ...identity, uid: 'vmi-uid', ownerReferences },
    spec: { domain: {} },
  });
  const owners: Record<string, { owner: Parameters<typeof stateOwnerOf>[0]; want: string }> = {
    'the VM': { owner: aVm(), want: 'vm-uid' },
    'the VM, even if it has an owner': {
      owner: aVm(ownerReferencesTo('pool-uid', { kind: 'VirtualMachinePool' })),
      want: 'vm-uid',
    },
    'the VM of an instance': { owner: aVmi(ownerReferencesTo('vm-uid')), want: 'vm-uid' },
    'an instance without a VM': { owner: aVmi(), want: 'vmi-uid' },
    'an instance that a replica set controls': {
      owner: aVmi(ownerReferencesTo('set-uid', { kind: 'VirtualMachineInstanceReplicaSet' })),
      want: 'vmi-uid',
    },
    'an instance that a kind of the same name controls': {
      owner: aVmi(ownerReferencesTo('x-uid', { apiVersion: 'example.com/v1' })),
      want: 'vmi-uid',
    },
  };
  for (const [sentence, { owner, want }] of Object.entries(owners)) {
    test(sentence, () => assert.deepEqual(stateOwnerOf(owner), { vmName: 'db', ownerUid: want }));
  }
});

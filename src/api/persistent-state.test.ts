/** Who needs persistent state, how its claims are named, and which of them is found (facts/kubevirt.md 7.2, S11 to S18). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  findState,
  isUnownedStateOf,
  legacyStateClaimName,
  needsState,
  stateAnnotationOf,
  stateClaimName,
  stateKeyOf,
  stateKeysOfClaim,
  stateOwnerOf,
  stateSuffixOf,
} from '#api/persistent-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { ObjectMeta, OwnerReference, Stored } from '#kube/meta.ts';

const NOW = '2026-01-01T00:00:00Z';
const OLDER = '2025-01-01T00:00:00Z';
const LABEL = 'persistent-state-for';

describe('state is needed', () => {
  const tpm = (value: NonNullable<VmiSpec['domain']['devices']>['tpm']) => ({ devices: { tpm: value } });
  const efi = (persistent?: boolean) => ({ firmware: { bootloader: { efi: { persistent } } } });
  const cases: Record<string, { domain: VmiSpec['domain']; want: boolean }> = {
    'by nothing': { domain: {}, want: false },
    'not by a TPM': { domain: tpm({}), want: false },
    'by a persistent TPM': { domain: tpm({ persistent: true }), want: true },
    'by a persistent TPM that is on': { domain: tpm({ persistent: true, enabled: true }), want: true },
    'not by one that is off': { domain: tpm({ persistent: true, enabled: false }), want: false },
    'not by EFI': { domain: efi(), want: false },
    'not by EFI that says so': { domain: efi(false), want: false },
    'by persistent EFI': { domain: efi(true), want: true },
    'by both': { domain: { ...efi(true), ...tpm({ persistent: true }) }, want: true },
    'by EFI beside a TPM that is off': {
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
    'so is one with dots': { vmName: 'db.eu.example.com', want: 'db.eu.example.com' },
    'so is one of 42 characters': { vmName: 'a'.repeat(42), want: 'a'.repeat(42) },
    'one of 43 is cut': { vmName: 'a'.repeat(43), want: `${'a'.repeat(33)}-66d34fba` },
    'one of 63 is cut': { vmName: LONG, want: `${'a'.repeat(33)}-7d3e74a0` },
    'none is cut to a dot': {
      vmName: `${'a'.repeat(32)}.${'b'.repeat(20)}`,
      want: `${'a'.repeat(32)}-f227bfa6`,
    },
  };
  /** A DNS name, as claims have it. */
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

  test('names that begin alike have other keys', () => {
    assert.notEqual(stateKeyOf(LONG), stateKeyOf(`${LONG.slice(1)}b`));
  });

  test('a suffix is the same for the same uid only', () => {
    assert.match(stateSuffixOf('u1'), /^[0-9a-f]{5}$/);
    assert.equal(stateSuffixOf('u1'), stateSuffixOf('u1'));
    assert.notEqual(stateSuffixOf('u1'), stateSuffixOf('u2'));
  });
});

const owned = (uid: string, more: Partial<OwnerReference> = {}): OwnerReference[] => [
  { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid, controller: true, ...more },
];
const annotated = (vmName = 'db') => ({ annotations: { [`persistent-state-for-${stateKeyOf(vmName)}`]: 'true' } });
const labelled = (vmName = 'db') => ({ labels: { [LABEL]: stateKeyOf(vmName) } });
const OURS = { ownerReferences: owned('db-uid') };
const GOING = { deletionTimestamp: NOW };
const superseding = (uid: string) => ({
  annotations: { ...annotated().annotations, 'selfsame.io/supersedes': uid },
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
  'nothing among none': { claims: [] },
  'nothing among disks': { claims: [aClaim('root', OURS), aClaim('db')] },
  'the one with the annotation': {
    claims: [aClaim('root', OURS), aClaim('a', { ...OURS, ...annotated() })],
    want: 'a',
  },
  'the one with the label': { claims: [aClaim('a', { ...OURS, ...labelled() })], want: 'a' },
  'none whose annotation says no': {
    claims: [aClaim('a', { ...OURS, annotations: { 'persistent-state-for-db': 'false' } })],
  },
  'one without an owner': { claims: [aClaim('a', annotated())], want: 'a' },
  'one whose owners are an empty list': { claims: [aClaim('a', { ...annotated(), ownerReferences: [] })], want: 'a' },
  'none of a VM of that name that is no more': {
    claims: [aClaim('a', { ...annotated(), ...labelled(), ownerReferences: owned('old-uid') })],
  },
  'none that the VM owns without controlling it': {
    claims: [aClaim('a', { ...annotated(), ownerReferences: owned('db-uid', { controller: false }) })],
  },
  'none without an owner that another VM has marked': {
    claims: [aClaim('a', { ...annotated(), ...labelled('web') }), aClaim('b', { ...annotated('web'), ...labelled() })],
  },
  'its own, also where another VM has marked it': {
    claims: [aClaim('a', { ...OURS, ...annotated(), ...labelled('web') })],
    want: 'a',
  },
  'none of another VM': { claims: [aClaim('a', annotated('web')), aClaim('b', labelled('web'))] },
  'the newest of several': {
    claims: [
      aClaim('a', { ...OURS, ...annotated(), creationTimestamp: OLDER }),
      aClaim('b', { ...OURS, ...labelled() }),
    ],
    want: 'b',
  },
  'of several as old the first by name': {
    claims: [aClaim('b', { ...OURS, ...annotated() }), aClaim('a', { ...OURS, ...annotated() })],
    want: 'a',
  },
  'none that is being deleted': { claims: [aClaim('a', { ...OURS, ...annotated(), ...GOING })] },
  'the other one, where the first is being deleted': {
    claims: [
      aClaim('a', { ...OURS, ...annotated(), ...GOING }),
      aClaim('b', { ...OURS, ...annotated(), creationTimestamp: OLDER }),
    ],
    want: 'b',
  },
  'the one of the legacy name': { claims: [aClaim(LEGACY, OURS)], want: LEGACY },
  'the one of the legacy name that nobody owns': { claims: [aClaim(LEGACY)], want: LEGACY },
  'a marked one before the legacy name': {
    claims: [aClaim(LEGACY, OURS), aClaim('a', { ...OURS, ...annotated(), creationTimestamp: OLDER })],
    want: 'a',
  },
  'no legacy name of a VM that is no more': { claims: [aClaim(LEGACY, { ownerReferences: owned('old-uid') })] },
  'no legacy name that is being deleted': { claims: [aClaim(LEGACY, { ...OURS, ...GOING })] },
  'no new name of another VM, which looks like a legacy name': {
    vmName: 'db-x4b2z',
    claims: [
      aClaim('persistent-state-for-db-x4b2z', { ...annotated('db'), ownerReferences: owned('other-uid') }),
      aClaim('persistent-state-for-db-x4b2z', annotated('db')),
    ],
  },
  'no target of a migration, which has no mark': { claims: [aClaim('persistent-state-for-db-x4b2z', OURS)] },
  'none that another one supersedes': {
    claims: [
      aClaim('old', { ...OURS, ...annotated() }),
      aClaim('new', { ...OURS, ...superseding('old-uid'), creationTimestamp: OLDER }),
    ],
    want: 'new',
  },
  'no legacy name that another one supersedes, although that one is going': {
    claims: [aClaim(LEGACY, OURS), aClaim('new', { ...OURS, ...superseding(`${LEGACY}-uid`), ...GOING })],
  },
  'one that says it supersedes itself': {
    claims: [aClaim('a', { ...OURS, ...superseding('a-uid') })],
    want: 'a',
  },
  'one that only a claim of somebody else supersedes': {
    claims: [
      aClaim('a', { ...OURS, ...annotated() }),
      aClaim('b', { ...superseding('a-uid'), ownerReferences: owned('old-uid') }),
    ],
    want: 'a',
  },
  'one that only an unmarked claim supersedes': {
    claims: [
      aClaim('a', { ...OURS, ...annotated() }),
      aClaim('b', { ...OURS, annotations: { 'selfsame.io/supersedes': 'a-uid' } }),
    ],
    want: 'a',
  },
  'that of a long name': {
    vmName: LONG_VM,
    claims: [aClaim('a', { ...OURS, ...annotated(LONG_VM) })],
    want: 'a',
  },
  'the legacy name of a long name': {
    vmName: LONG_VM,
    claims: [aClaim(legacyStateClaimName(LONG_VM), OURS)],
    want: legacyStateClaimName(LONG_VM),
  },
  'that of a name with dots': {
    vmName: 'db.eu',
    claims: [aClaim('a', { ...OURS, ...labelled('db.eu') }), aClaim('b', { ...OURS, ...annotated() })],
    want: 'a',
  },
};

describe('of the claims is found', () => {
  for (const [sentence, { claims, vmName = 'db', want }] of Object.entries(cases)) {
    test(sentence, () => {
      const owner = { vmName, ownerUid: 'db-uid' };
      assert.equal(findState(claims, owner)?.metadata.name, want);
      // Whoever looks them up by key finds the same.
      const indexed = claims.filter((claim) => stateKeysOfClaim(claim).includes(stateKeyOf(vmName)));
      assert.equal(findState(indexed, owner)?.metadata.name, want);
    });
  }
});

describe('without an owner it is the state of the VM', () => {
  const unowned: Record<string, { claim: Stored<PersistentVolumeClaim>; want: boolean }> = {
    'by a mark': { claim: aClaim('a', annotated()), want: true },
    'by its legacy name': { claim: aClaim(LEGACY), want: true },
    'not where it has an owner': { claim: aClaim(LEGACY, OURS), want: false },
    'not where it has the mark of another': { claim: aClaim(LEGACY, labelled('web')), want: false },
    'not where it is any claim': { claim: aClaim('db'), want: false },
  };
  for (const [sentence, { claim, want }] of Object.entries(unowned)) {
    test(sentence, () => assert.equal(isUnownedStateOf(claim, 'db'), want));
  }
});

describe('its owner is', () => {
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
    'the VM, whoever made it': { owner: aVm(owned('pool-uid', { kind: 'VirtualMachinePool' })), want: 'vm-uid' },
    'the VM of an instance': { owner: aVmi(owned('vm-uid')), want: 'vm-uid' },
    'an instance that stands alone': { owner: aVmi(), want: 'vmi-uid' },
    'an instance that somebody else controls': {
      owner: aVmi(owned('set-uid', { kind: 'VirtualMachineInstanceReplicaSet' })),
      want: 'vmi-uid',
    },
    'an instance that a kind of the same name controls': {
      owner: aVmi(owned('x-uid', { apiVersion: 'example.com/v1' })),
      want: 'vmi-uid',
    },
  };
  for (const [sentence, { owner, want }] of Object.entries(owners)) {
    test(sentence, () => assert.deepEqual(stateOwnerOf(owner), { vmName: 'db', ownerUid: want }));
  }
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type ClaimBindingWorld,
  decideClaimBinding,
} from '#engine/controllers/persistent-volume/decide-claim-binding.ts';
import { defaultClassOf } from '#engine/controllers/persistent-volume/storage-class.ts';
import { aClaim, aClass, aVolume, type ClaimOptions } from '#engine/controllers/persistent-volume/storage.fixture.ts';
import type { Plan } from '#runtime/plan.ts';

const BOUND = { 'pv.kubernetes.io/bind-completed': 'yes' };
const MAKER = 'example.com/maker';
const WAITS = aClass('manual', { volumeBindingMode: 'WaitForFirstConsumer' });
const selected = { annotations: { 'volume.kubernetes.io/selected-node': 'node-1' } };
const theClaim = { namespace: 'default', name: 'disk' };
const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1', labels: { zone: 'a' } } };
const inZone = (zone: string) => ({
  required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: [zone] }] }] },
});

function deeds({ changes, events = [] }: Plan): string[] {
  const written = changes.map((change) => {
    assert.ok(change.do === 'patch');
    return `${change.type.plural}/${change.name.name}${change.subresource === undefined ? '' : `/${change.subresource}`}`;
  });
  return [...written, ...events.map(({ reason }) => reason)];
}

const binds = (volume: string) => [
  `persistentvolumes/${volume}`,
  'persistentvolumeclaims/disk',
  'persistentvolumeclaims/disk/status',
];

interface Case extends Partial<Omit<ClaimBindingWorld, 'claim'>> {
  readonly claim?: ClaimOptions;
  readonly want: string[];
}

const cases: Record<string, Case> = {
  'gets the smallest that fits, the first by name of equal ones': {
    candidates: [
      aVolume('large', { spec: { capacity: { storage: '10Gi' } } }),
      aVolume('b', { spec: { capacity: { storage: '2Gi' } } }),
      aVolume('a', { spec: { capacity: { storage: '2048Mi' } } }),
      aVolume('tiny', { spec: { capacity: { storage: '1Mi' } } }),
    ],
    want: binds('a'),
  },
  'gets the one that is reserved for it, whatever its size': {
    candidates: [aVolume('a'), aVolume('mine', { spec: { capacity: { storage: '9Gi' }, claimRef: { ...theClaim } } })],
    want: binds('mine'),
  },
  'gets the one that was made for it without writing to it': {
    candidates: [aVolume('mine', { spec: { claimRef: { ...theClaim, uid: 'disk-uid' } } })],
    want: binds('mine').slice(1),
  },
  'gets none that was made for its predecessor': {
    candidates: [aVolume('old', { spec: { claimRef: { ...theClaim, uid: 'another' } } })],
    storageClass: aClass('manual'),
    want: ['persistentvolumeclaims/disk', 'ExternalProvisioning'],
  },
  'gets none of another class, mode, access or label, nor one that is to go or not ready': {
    claim: { spec: { selector: { matchLabels: { tier: 'fast' } } } },
    candidates: [
      aVolume('class', { meta: { labels: { tier: 'fast' } }, spec: { storageClassName: 'other' } }),
      aVolume('mode', { meta: { labels: { tier: 'fast' } }, spec: { volumeMode: 'Block' } }),
      aVolume('access', { meta: { labels: { tier: 'fast' } }, spec: { accessModes: ['ReadOnlyMany'] } }),
      aVolume('label', { meta: { labels: { tier: 'slow' } } }),
      aVolume('going', { meta: { labels: { tier: 'fast' }, deletionTimestamp: 'x' } }),
      aVolume('new', { meta: { labels: { tier: 'fast' } }, phase: 'Pending' }),
    ],
    want: ['ProvisioningFailed'],
  },
  'waits for its first consumer though a volume is there': {
    candidates: [aVolume('a')],
    storageClass: WAITS,
    want: ['WaitForFirstConsumer'],
  },
  'gets a volume that its consumer reaches': {
    claim: { meta: selected },
    candidates: [
      aVolume('far', { spec: { nodeAffinity: inZone('b') } }),
      aVolume('near', { spec: { nodeAffinity: inZone('a') } }),
    ],
    storageClass: WAITS,
    node,
    want: binds('near'),
  },
  'asks for a volume when its consumer has a node': {
    claim: { meta: selected },
    storageClass: WAITS,
    want: ['persistentvolumeclaims/disk', 'ExternalProvisioning'],
  },
  'is marked once for those who make volumes': {
    claim: {
      meta: {
        annotations: {
          'volume.kubernetes.io/storage-provisioner': MAKER,
          'volume.beta.kubernetes.io/storage-provisioner': MAKER,
        },
      },
    },
    storageClass: aClass('manual'),
    want: ['ExternalProvisioning'],
  },
  'is told when its class makes none': {
    storageClass: aClass('manual', { provisioner: 'kubernetes.io/no-provisioner' }),
    want: ['ProvisioningFailed'],
  },
  'gets the default class when it names none': {
    claim: { spec: { storageClassName: undefined } },
    defaultClass: aClass('standard'),
    want: ['persistentvolumeclaims/disk'],
  },
  'gets no class when it wants none': {
    claim: { spec: { storageClassName: '' } },
    defaultClass: aClass('standard'),
    want: ['FailedBinding'],
  },
  'is not bound when it is to go': {
    claim: { meta: { deletionTimestamp: 'x' } },
    candidates: [aVolume('a')],
    want: [],
  },
  'gets the volume that it names': {
    claim: { spec: { volumeName: 'a' } },
    volume: aVolume('a'),
    want: binds('a'),
  },
  'waits for the volume that it names': { claim: { spec: { volumeName: 'a' } }, want: [] },
  'is told why it cannot have the one that it names': {
    claim: { spec: { volumeName: 'a', volumeMode: 'Block' } },
    volume: aVolume('a'),
    want: ['VolumeMismatch'],
  },
  'cannot have the one of another': {
    claim: { spec: { volumeName: 'a' } },
    volume: aVolume('a', { spec: { claimRef: { namespace: 'default', name: 'other', uid: 'x' } } }),
    want: ['FailedBinding'],
  },
  'is lost with its volume': {
    claim: { meta: { annotations: BOUND }, spec: { volumeName: 'a' }, phase: 'Bound' },
    want: ['persistentvolumeclaims/disk/status', 'ClaimLost'],
  },
  'is lost once': {
    claim: { meta: { annotations: BOUND }, spec: { volumeName: 'a' }, phase: 'Lost' },
    want: [],
  },
  'is lost when another has its volume': {
    claim: { meta: { annotations: BOUND }, spec: { volumeName: 'a' }, phase: 'Bound' },
    volume: aVolume('a', { spec: { claimRef: { ...theClaim, uid: 'another' } } }),
    want: ['persistentvolumeclaims/disk/status', 'ClaimMisbound'],
  },
  'is bound, and that is all': {
    claim: { meta: { annotations: BOUND }, spec: { volumeName: 'a' }, phase: 'Bound' },
    volume: aVolume('a', { spec: { claimRef: { ...theClaim, uid: 'disk-uid' } } }),
    want: [],
  },
};

describe('a claim', () => {
  for (const [name, { claim, want, ...world }] of Object.entries(cases)) {
    it(name, () =>
      assert.deepEqual(deeds(decideClaimBinding({ candidates: [], ...world, claim: aClaim(claim) })), want),
    );
  }
  it('takes a volume only in the state in which it was free', () => {
    const [change] = decideClaimBinding({ claim: aClaim(), candidates: [aVolume('a')] }).changes;
    assert.ok(change?.do === 'patch');
    assert.deepEqual(change.patch.body, {
      metadata: { resourceVersion: '1', annotations: { 'pv.kubernetes.io/bound-by-controller': 'yes' } },
      spec: {
        claimRef: {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          namespace: 'default',
          name: 'disk',
          uid: 'disk-uid',
          resourceVersion: '1',
        },
      },
    });
  });
});

describe('the default class', () => {
  const isDefault = { 'storageclass.kubernetes.io/is-default-class': 'true' };
  const made = (name: string, at: string, annotations: Record<string, string> = isDefault) =>
    aClass(name, { metadata: { creationTimestamp: at, annotations } });
  it('is the newest, then the first by name', () => {
    const classes = [
      made('c', '2030-01-01T00:00:00Z'),
      made('b', '2030-01-02T00:00:00Z'),
      made('a', '2030-01-02T00:00:00Z'),
    ];
    assert.equal(defaultClassOf(classes)?.metadata.name, 'a');
  });
  it('is none where none says so', () => {
    assert.equal(defaultClassOf([made('a', 'x', { ...isDefault, [Object.keys(isDefault)[0]!]: 'yes' })]), undefined);
  });
});

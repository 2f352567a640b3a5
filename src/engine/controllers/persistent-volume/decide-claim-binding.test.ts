import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type ClaimBindingWorld,
  decideClaimBinding,
} from '#engine/controllers/persistent-volume/decide-claim-binding.ts';
import { defaultClassOf } from '#engine/controllers/persistent-volume/storage-class.ts';
import {
  aClaim,
  aClass,
  aVolume,
  type ClaimOptions,
} from '#engine/controllers/persistent-volume/testing/sample-storage.ts';
import type { Plan } from '#runtime/plan.ts';

const BOUND = { 'pv.kubernetes.io/bind-completed': 'yes' };
const PROVISIONER = 'example.com/provisioner';
const WAITING_CLASS = aClass('manual', { volumeBindingMode: 'WaitForFirstConsumer' });
const selected = { annotations: { 'volume.kubernetes.io/selected-node': 'node-1' } };
const theClaim = { namespace: 'default', name: 'disk' };
const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1', labels: { zone: 'a' } } };
const inZone = (zone: string) => ({
  required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: [zone] }] }] },
});

function describePlan({ changes, events = [] }: Plan): string[] {
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
  'gets the smallest volume that fits, the first by name if equal': {
    candidates: [
      aVolume('large', { spec: { capacity: { storage: '10Gi' } } }),
      aVolume('b', { spec: { capacity: { storage: '2Gi' } } }),
      aVolume('a', { spec: { capacity: { storage: '2048Mi' } } }),
      aVolume('tiny', { spec: { capacity: { storage: '1Mi' } } }),
    ],
    want: binds('a'),
  },
  'gets the volume that is reserved for it, regardless of its size': {
    candidates: [aVolume('a'), aVolume('mine', { spec: { capacity: { storage: '9Gi' }, claimRef: { ...theClaim } } })],
    want: binds('mine'),
  },
  'gets the volume that was provisioned for it, without a patch of the volume': {
    candidates: [aVolume('mine', { spec: { claimRef: { ...theClaim, uid: 'disk-uid' } } })],
    want: binds('mine').slice(1),
  },
  'does not get a volume that was provisioned for an earlier claim of the same name': {
    candidates: [aVolume('old', { spec: { claimRef: { ...theClaim, uid: 'another' } } })],
    storageClass: aClass('manual'),
    want: ['persistentvolumeclaims/disk', 'ExternalProvisioning'],
  },
  'gets no volume that differs in class, mode, access or labels, is under deletion or not available': {
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
  'waits for its first consumer even if a volume fits': {
    candidates: [aVolume('a')],
    storageClass: WAITING_CLASS,
    want: ['WaitForFirstConsumer'],
  },
  'gets a volume that is reachable from its consumer': {
    claim: { meta: selected },
    candidates: [
      aVolume('far', { spec: { nodeAffinity: inZone('b') } }),
      aVolume('near', { spec: { nodeAffinity: inZone('a') } }),
    ],
    storageClass: WAITING_CLASS,
    node,
    want: binds('near'),
  },
  'requests a volume when its consumer has a node': {
    claim: { meta: selected },
    storageClass: WAITING_CLASS,
    want: ['persistentvolumeclaims/disk', 'ExternalProvisioning'],
  },
  'is annotated once for the provisioner': {
    claim: {
      meta: {
        annotations: {
          'volume.kubernetes.io/storage-provisioner': PROVISIONER,
          'volume.beta.kubernetes.io/storage-provisioner': PROVISIONER,
        },
      },
    },
    storageClass: aClass('manual'),
    want: ['ExternalProvisioning'],
  },
  'reports that its class has no provisioner': {
    storageClass: aClass('manual', { provisioner: 'kubernetes.io/no-provisioner' }),
    want: ['ProvisioningFailed'],
  },
  'gets the default class if it names none': {
    claim: { spec: { storageClassName: undefined } },
    defaultClass: aClass('standard'),
    want: ['persistentvolumeclaims/disk'],
  },
  'gets no class if it requests none': {
    claim: { spec: { storageClassName: '' } },
    defaultClass: aClass('standard'),
    want: ['FailedBinding'],
  },
  'is not bound while it is under deletion': {
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
  'reports why it cannot use the volume that it names': {
    claim: { spec: { volumeName: 'a', volumeMode: 'Block' } },
    volume: aVolume('a'),
    want: ['VolumeMismatch'],
  },
  'cannot use the volume of another claim': {
    claim: { spec: { volumeName: 'a' } },
    volume: aVolume('a', { spec: { claimRef: { namespace: 'default', name: 'other', uid: 'x' } } }),
    want: ['FailedBinding'],
  },
  'is Lost if its volume does not exist': {
    claim: { meta: { annotations: BOUND }, spec: { volumeName: 'a' }, phase: 'Bound' },
    want: ['persistentvolumeclaims/disk/status', 'ClaimLost'],
  },
  'is set to Lost only once': {
    claim: { meta: { annotations: BOUND }, spec: { volumeName: 'a' }, phase: 'Lost' },
    want: [],
  },
  'is Lost if another claim has its volume': {
    claim: { meta: { annotations: BOUND }, spec: { volumeName: 'a' }, phase: 'Bound' },
    volume: aVolume('a', { spec: { claimRef: { ...theClaim, uid: 'another' } } }),
    want: ['persistentvolumeclaims/disk/status', 'ClaimMisbound'],
  },
  'does not change when it is bound': {
    claim: { meta: { annotations: BOUND }, spec: { volumeName: 'a' }, phase: 'Bound' },
    volume: aVolume('a', { spec: { claimRef: { ...theClaim, uid: 'disk-uid' } } }),
    want: [],
  },
};

describe('a claim', () => {
  for (const [name, { claim, want, ...world }] of Object.entries(cases)) {
    it(name, () =>
      assert.deepEqual(describePlan(decideClaimBinding({ candidates: [], ...world, claim: aClaim(claim) })), want),
    );
  }
  it('binds a volume only in the observed version', () => {
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
  const createdAt = (name: string, at: string, annotations: Record<string, string> = isDefault) =>
    aClass(name, { metadata: { creationTimestamp: at, annotations } });
  it('is the newest, then the first by name', () => {
    const classes = [
      createdAt('c', '2030-01-01T00:00:00Z'),
      createdAt('b', '2030-01-02T00:00:00Z'),
      createdAt('a', '2030-01-02T00:00:00Z'),
    ];
    assert.equal(defaultClassOf(classes)?.metadata.name, 'a');
  });
  it('is undefined if no class has the annotation with value true', () => {
    assert.equal(
      defaultClassOf([createdAt('a', 'x', { ...isDefault, [Object.keys(isDefault)[0]!]: 'yes' })]),
      undefined,
    );
  });
});

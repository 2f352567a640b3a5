import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decideVolumePhase } from '#engine/controllers/persistent-volume/decide-volume-phase.ts';
import { decideProtection } from '#engine/controllers/persistent-volume/protection.ts';
import {
  aClaim,
  aVolume,
  NOW,
  type VolumeOptions,
} from '#engine/controllers/persistent-volume/testing/sample-storage.ts';
import { PERSISTENT_VOLUMES, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

const claimRef = { namespace: 'default', name: 'disk', uid: 'disk-uid' };
const PROVISIONED = { annotations: { 'pv.kubernetes.io/provisioned-by': 'x' } };
const BOUND_BY_CONTROLLER = { annotations: { 'pv.kubernetes.io/bound-by-controller': 'yes' } };
const status = (phase: string, message: string | null = null) => ({
  status: { phase, message, lastPhaseTransitionTime: NOW },
});

interface Case {
  readonly volume: VolumeOptions;
  readonly claim?: Stored<PersistentVolumeClaim>;
  /** The body of the patch; undefined = nothing is written. */
  readonly want?: object;
}

const boundElsewhere = aClaim({ spec: { volumeName: 'other' } });
const cases: Record<string, Case> = {
  'that no claim refers to is Available': { volume: { phase: 'Pending' }, want: status('Available') },
  'that is only reserved is Available': {
    volume: { phase: 'Pending', spec: { claimRef: { namespace: 'default', name: 'disk' } } },
    want: status('Available'),
  },
  'is Bound when its claim names it': {
    volume: { spec: { claimRef } },
    claim: aClaim({ spec: { volumeName: 'a' } }),
    want: status('Bound'),
  },
  'is not written again': {
    volume: { phase: 'Bound', spec: { claimRef } },
    claim: aClaim({ spec: { volumeName: 'a' } }),
  },
  'is not changed while its claim has no volume yet': {
    volume: { phase: 'Pending', spec: { claimRef } },
    claim: aClaim(),
  },
  'is Released when its claim is deleted': { volume: { phase: 'Bound', spec: { claimRef } }, want: status('Released') },
  'cannot be recycled': {
    volume: { phase: 'Bound', spec: { claimRef, persistentVolumeReclaimPolicy: 'Recycle' } },
    want: status('Failed', 'No recycler plugin found for the volume!'),
  },
  'that is Failed stays Failed': { volume: { phase: 'Failed', spec: { claimRef } } },
  'that was provisioned for a claim with another volume is Released': {
    volume: { phase: 'Bound', meta: PROVISIONED, spec: { claimRef, persistentVolumeReclaimPolicy: 'Delete' } },
    claim: boundElsewhere,
    want: status('Released'),
  },
  'that the binder reserved for a claim with another volume is unbound': {
    volume: { phase: 'Bound', meta: BOUND_BY_CONTROLLER, spec: { claimRef } },
    claim: boundElsewhere,
    want: {
      metadata: { annotations: { 'pv.kubernetes.io/bound-by-controller': null } },
      spec: { claimRef: null },
    },
  },
  'that an administrator reserved stays reserved': {
    volume: { phase: 'Bound', spec: { claimRef } },
    claim: boundElsewhere,
    want: { spec: { claimRef: { uid: null, resourceVersion: null } } },
  },
};

describe('a volume', () => {
  for (const [name, { volume, claim, want }] of Object.entries(cases)) {
    it(name, () => {
      const { changes } = decideVolumePhase({ volume: aVolume('a', volume), claim, now: NOW });
      const bodies = changes.map((change) => (change.do === 'patch' ? change.patch.body : change.do));
      assert.deepEqual(bodies, want === undefined ? [] : [want]);
    });
  }
});

describe('the protection finalizer', () => {
  const finalizer = 'kubernetes.io/pv-protection';
  const bodies = (meta: ObjectMeta, used = false) => {
    const object = aVolume('a', { meta });
    const { changes } = decideProtection({ object, type: PERSISTENT_VOLUMES, finalizer, used });
    return changes.map((change) => (change.do === 'patch' ? change.patch.body : change.do));
  };
  const deleting = { deletionTimestamp: NOW, finalizers: ['other', finalizer] };
  it('is added to an object without it', () => {
    assert.deepEqual(bodies({ finalizers: ['other'] }), [{ metadata: { finalizers: [finalizer] } }]);
    assert.deepEqual(bodies({ finalizers: [finalizer] }), []);
  });
  it('is kept on a used object under deletion', () => assert.deepEqual(bodies(deleting, true), []));
  it('is removed from an unused object under deletion', () => {
    const path = '/metadata/finalizers/1';
    assert.deepEqual(bodies(deleting), [
      [
        { op: 'test', path, value: finalizer },
        { op: 'remove', path },
      ],
    ]);
  });
  it('is not added to an object under deletion', () => assert.deepEqual(bodies({ deletionTimestamp: NOW }), []));
});

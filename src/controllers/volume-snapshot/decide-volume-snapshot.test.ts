import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  aClaim,
  aContent,
  aSnapshot,
  aVolume,
  describePlan,
  GIB,
  NOW,
  SHARED,
} from '#controllers/shared/local-storage/testing/sample-storage.ts';
import { decideVolumeSnapshot } from '#controllers/volume-snapshot/decide-volume-snapshot.ts';
import type { VolumeSnapshotWorld } from '#controllers/volume-snapshot/volume-snapshot-world.ts';
import type { Stored } from '#kube/meta.ts';
import type { VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import type { Plan } from '#runtime/plan.ts';

const BOUND = 'snapshot.storage.kubernetes.io/volumesnapshot-bound-protection';
const SOURCE = 'snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection';

function aSnapshotClass(more: Partial<VolumeSnapshotClass> = {}): Stored<VolumeSnapshotClass> {
  return {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotClass',
    driver: 'local.selfsame.io',
    deletionPolicy: 'Delete',
    ...more,
    metadata: { name: 'local', uid: 'k', resourceVersion: '1', creationTimestamp: NOW },
  };
}

const BOUND_CLAIM = aClaim({ spec: { volumeName: 'pvc-u1' }, status: { phase: 'Bound' } });

/** Builds the world of a VolumeSnapshot that can be taken at once. */
const aWorld = (more: Partial<VolumeSnapshotWorld> = {}): VolumeSnapshotWorld => ({
  snapshot: aSnapshot(),
  snapshotClass: aSnapshotClass(),
  defaultClasses: [],
  claim: BOUND_CLAIM,
  volume: aVolume(),
  isClaimed: false,
  isCopied: false,
  now: NOW,
  ...more,
});

const heldSnapshot = (metadata: object = {}) => aSnapshot({ metadata: { finalizers: [BOUND], ...metadata } });
const withoutClass = aSnapshot({ spec: { source: { persistentVolumeClaimName: 'disk' } } });
const finalizersIn = ({ changes }: Plan) =>
  changes.flatMap((change) =>
    change.do === 'patch' && change.type.kind === 'VolumeSnapshot'
      ? [(change.patch.body as VolumeSnapshot).metadata.finalizers]
      : [],
  );

describe('a VolumeSnapshot of a claim', () => {
  const taken = ['patch VolumeSnapshot', 'create VolumeSnapshotContent'];
  const cases: Record<string, { world: Partial<VolumeSnapshotWorld>; want: string[] }> = {
    'gets its finalizer before its content': { world: {}, want: taken },
    'gets its finalizer once': { world: { snapshot: heldSnapshot() }, want: ['create VolumeSnapshotContent'] },
    'gets the default class': {
      world: { snapshot: withoutClass, snapshotClass: undefined, defaultClasses: [aSnapshotClass()] },
      want: taken,
    },
    'is ignored with a class of another driver': {
      world: { snapshotClass: aSnapshotClass({ driver: 'x' }) },
      want: [],
    },
    'is ignored without a class if the volume has another driver': {
      world: { snapshot: withoutClass, snapshotClass: undefined, volume: aVolume({ metadata: { annotations: {} } }) },
      want: [],
    },
    'is not taken again if its content is lost': {
      world: {
        snapshot: aSnapshot({ status: { boundVolumeSnapshotContentName: 'snapcontent-s1', readyToUse: true } }),
      },
      want: ['SnapshotCreationFailed'],
    },
  };
  for (const [name, { world, want }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(describePlan(decideVolumeSnapshot(aWorld(world))), want));
  }

  const faults: Record<string, { world: Partial<VolumeSnapshotWorld>; want: string }> = {
    'fails without a claim': {
      world: { claim: undefined, volume: undefined },
      want: 'PersistentVolumeClaim "disk" not found',
    },
    'fails if the claim has no volume': {
      world: { claim: aClaim(), volume: undefined },
      want: 'PersistentVolumeClaim "disk" is not bound to a volume',
    },
    'fails if the claim is being deleted': {
      world: { claim: { ...BOUND_CLAIM, metadata: { ...BOUND_CLAIM.metadata, deletionTimestamp: NOW } } },
      want: 'PersistentVolumeClaim "disk" is being deleted',
    },
    'fails if the volume is bound to another claim': {
      world: { volume: aVolume({ spec: { claimRef: { uid: 'other' } } }) },
      want: 'PersistentVolumeClaim "disk" is not bound to a volume',
    },
    'fails if the volume has another driver': {
      world: { volume: aVolume({ metadata: { annotations: {} } }) },
      want: 'PersistentVolume "pvc-u1" does not belong to the driver local.selfsame.io',
    },
    'fails if the volume is not filled yet': {
      world: { volume: aVolume({ copy: { handle: 'shared/x' } }) },
      want: 'PersistentVolume "pvc-u1" is still being filled from a snapshot',
    },
    'fails if its class does not exist': {
      world: { snapshotClass: undefined },
      want: 'VolumeSnapshotClass "local" not found',
    },
    'fails without a class and a default class': {
      world: { snapshot: withoutClass, snapshotClass: undefined },
      want: 'default VolumeSnapshotClass not found',
    },
    'fails with two default classes': {
      world: {
        snapshot: withoutClass,
        snapshotClass: undefined,
        defaultClasses: [aSnapshotClass(), aSnapshotClass()],
      },
      want: '2 default snapshot classes were found',
    },
    'fails if the class has an unknown parameter': {
      world: { snapshotClass: aSnapshotClass({ parameters: { tier: 'fast' } }) },
      want: 'VolumeSnapshotClass "local": parameters.tier is unknown',
    },
  };
  for (const [name, { world, want }] of Object.entries(faults)) {
    it(name, () => {
      const { changes, status } = decideVolumeSnapshot(aWorld(world));
      assert.deepEqual(changes, []);
      assert.deepEqual(status, {
        readyToUse: false,
        error: { time: NOW, message: `failed to take snapshot: ${want}` },
      });
    });
  }

  it('reports the same error once', () => {
    const before = {
      time: '2029-01-01T00:00:00Z',
      message: 'failed to take snapshot: 2 default snapshot classes were found',
    };
    const snapshot = { ...withoutClass, status: { readyToUse: false, error: before } };
    const classes = [aSnapshotClass(), aSnapshotClass()];
    const { status, events } = decideVolumeSnapshot(
      aWorld({ snapshot, snapshotClass: undefined, defaultClasses: classes }),
    );
    assert.deepEqual([status, events], [snapshot.status, []]);
  });

  it('writes the class that was selected', () => {
    const world = aWorld({ snapshot: withoutClass, snapshotClass: undefined, defaultClasses: [aSnapshotClass()] });
    const [change] = decideVolumeSnapshot(world).changes;
    assert.ok(change?.do === 'patch');
    assert.deepEqual(change.patch.body, {
      metadata: { resourceVersion: '1', finalizers: [BOUND] },
      spec: { volumeSnapshotClassName: 'local' },
    });
  });
});

describe('a new content', () => {
  const contentFor = (world: Partial<VolumeSnapshotWorld>) => {
    const change = decideVolumeSnapshot(aWorld({ snapshot: heldSnapshot(), ...world })).changes[0];
    assert.ok(change?.do === 'create');
    return change.object as VolumeSnapshotContent;
  };

  it('has its source, its node and its snapshot set', () => {
    const set = { 'selfsame.io/snapshot-set': 'x', 'selfsame.io/snapshot-set-size': '2' };
    const instance = { 'selfsame.io/snapshot-instance': 'i' };
    const { metadata, spec } = contentFor({
      snapshot: heldSnapshot({ annotations: { ...set, ...instance, other: 'y' } }),
    });
    assert.equal(metadata.name, 'snapcontent-s1');
    assert.deepEqual(metadata.annotations, { ...set, ...instance, 'selfsame.io/snapshot-node': 'node-1' });
    assert.deepEqual(metadata.finalizers, ['selfsame.io/snapshot-data']);
    assert.deepEqual(spec, {
      deletionPolicy: 'Delete',
      driver: 'local.selfsame.io',
      source: { volumeHandle: 'pvc-u1' },
      sourceVolumeMode: 'Filesystem',
      volumeSnapshotClassName: 'local',
      volumeSnapshotRef: {
        apiVersion: 'snapshot.storage.k8s.io/v1',
        kind: 'VolumeSnapshot',
        namespace: 'default',
        name: 'snap',
        uid: 's1',
      },
    });
  });
  const STATE = 'selfsame.io/snapshot-state';
  const marked = (name: string, labels = {}) => ({
    ...BOUND_CLAIM,
    metadata: { ...BOUND_CLAIM.metadata, name, labels },
  });
  const states: Record<
    string,
    { claim: VolumeSnapshotWorld['claim']; isAnnotated?: boolean; want: string | undefined }
  > = {
    'is marked as state if the claim is': {
      claim: marked('x', { 'persistent-state-for': 'web' }),
      want: 'true',
    },
    'is not marked as state if the claim only has the name of one': {
      claim: marked('persistent-state-for-web'),
      want: undefined,
    },
    'is marked as state if the claim has the name of one and the snapshot says so': {
      claim: marked('persistent-state-for-web'),
      isAnnotated: true,
      want: 'true',
    },
    'is not marked as state if the claim is a disk, even if the snapshot says so': {
      claim: BOUND_CLAIM,
      isAnnotated: true,
      want: undefined,
    },
  };
  for (const [sentence, { claim, isAnnotated = false, want }] of Object.entries(states)) {
    it(sentence, () => {
      const snapshot = heldSnapshot(isAnnotated ? { annotations: { [STATE]: 'true' } } : {});
      assert.equal(contentFor({ snapshot, claim }).metadata.annotations?.[STATE], want);
    });
  }
  it('gets the node that can copy if the volume is shared', () => {
    const volume = aVolume({ storageClass: SHARED });
    const node = (copier?: string) =>
      contentFor({ volume, copier }).metadata.annotations?.['selfsame.io/snapshot-node'];
    assert.deepEqual([node('node-7'), node()], ['node-7', undefined]);
  });
});

describe('a VolumeSnapshot with a content', () => {
  const statusOf = (status?: VolumeSnapshotContent['status']) =>
    decideVolumeSnapshot(aWorld({ snapshot: heldSnapshot(), content: aContent({ status }) })).status;

  it('is bound to it at once', () => {
    assert.deepEqual(statusOf(), { boundVolumeSnapshotContentName: 'snapcontent-s1', readyToUse: false });
  });
  it('has the status of the content in readable units', () => {
    const status = {
      snapshotHandle: 'shared/x',
      creationTime: 1_893_456_000_123_000_000,
      readyToUse: true,
      restoreSize: GIB,
    };
    assert.deepEqual(statusOf(status), {
      boundVolumeSnapshotContentName: 'snapcontent-s1',
      creationTime: '2030-01-01T00:00:00Z',
      readyToUse: true,
      restoreSize: '1Gi',
    });
  });
  it('has the error of the content', () => {
    const error = { time: NOW, message: 'disk full' };
    assert.deepEqual(statusOf({ readyToUse: false, error })?.['error'], error);
  });

  const staticOne = aSnapshot({ spec: { source: { volumeSnapshotContentName: 'old' } } });
  const heldStatic = { ...staticOne, metadata: { ...staticOne.metadata, finalizers: [BOUND] } };
  const refer = (uid?: string, name = 'snap') =>
    aContent({ spec: { volumeSnapshotRef: { namespace: 'default', name, uid } } });
  const bare = { claim: undefined, volume: undefined, snapshotClass: undefined };
  const cases: Record<string, { world: Partial<VolumeSnapshotWorld>; want: string[] }> = {
    'binds a content that was created for its name': {
      world: { ...bare, snapshot: staticOne, content: refer() },
      want: ['patch VolumeSnapshot', 'patch VolumeSnapshotContent'],
    },
    'gets its finalizer before it is bound': {
      world: { ...bare, snapshot: staticOne, content: refer('s1') },
      want: ['patch VolumeSnapshot'],
    },
    'is bound after it has its finalizer': { world: { ...bare, snapshot: heldStatic, content: refer('s1') }, want: [] },
    'reports that a content from a user has no status': {
      world: {
        ...bare,
        snapshot: heldStatic,
        content: aContent({ spec: { source: { snapshotHandle: 'shared/x' } } }),
      },
      want: ['SnapshotCreationFailed'],
    },
    'is not bound to the content of an earlier snapshot of the same name': {
      world: { ...bare, snapshot: heldStatic, content: refer('s0') },
      want: ['SnapshotCreationFailed'],
    },
    'is not bound to the content of another snapshot': {
      world: { ...bare, snapshot: heldStatic, content: refer(undefined, 'other') },
      want: ['SnapshotCreationFailed'],
    },
    'is ignored if the content has another driver': {
      world: { snapshot: staticOne, content: aContent({ spec: { driver: 'x' } }) },
      want: [],
    },
    'records an Event when it becomes ready': {
      world: { snapshot: heldSnapshot(), content: aContent({ status: { creationTime: 1, readyToUse: true } }) },
      want: ['SnapshotCreated', 'SnapshotReady'],
    },
  };
  for (const [name, { world, want }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(describePlan(decideVolumeSnapshot(aWorld(world))), want));
  }

  it('has the source finalizer while volumes are created from it', () => {
    const content = aContent();
    const used = heldSnapshot({ finalizers: ['other', BOUND, SOURCE] });
    const decided = (world: Partial<VolumeSnapshotWorld>) =>
      finalizersIn(decideVolumeSnapshot(aWorld({ content, ...world })));
    assert.deepEqual(decided({ snapshot: heldSnapshot(), isClaimed: true }), [[BOUND, SOURCE]]);
    assert.deepEqual(decided({ snapshot: heldSnapshot(), isCopied: true }), [[BOUND, SOURCE]]);
    assert.deepEqual(decided({ snapshot: used, isCopied: true }), []);
    assert.deepEqual(decided({ snapshot: used }), [['other', BOUND]]);
  });
});

describe('a VolumeSnapshot under deletion', () => {
  const going = (finalizers = [BOUND]) => heldSnapshot({ deletionTimestamp: NOW, finalizers });
  const cases: Record<string, { world: Partial<VolumeSnapshotWorld>; want: string[] }> = {
    'deletes its content': { world: { content: aContent() }, want: ['delete VolumeSnapshotContent'] },
    'waits for the deletion of its content': {
      world: { content: aContent({ metadata: { deletionTimestamp: NOW } }) },
      want: [],
    },
    'loses its finalizers after its content': { world: {}, want: ['patch VolumeSnapshot'] },
    'loses its finalizers also if its driver is unknown': {
      world: { snapshotClass: undefined, claim: undefined, volume: undefined },
      want: ['patch VolumeSnapshot'],
    },
    'keeps a content with the policy Retain': {
      world: { content: aContent({ spec: { deletionPolicy: 'Retain' } }) },
      want: ['patch VolumeSnapshot'],
    },
    'keeps the content of another snapshot': {
      world: { content: aContent({ spec: { volumeSnapshotRef: { namespace: 'default', name: 'snap', uid: 's0' } } }) },
      want: ['patch VolumeSnapshot'],
    },
    'waits while a volume is being filled from it': { world: { content: aContent(), isCopied: true }, want: [] },
    'waits for claims that were created before': {
      world: { snapshot: going([BOUND, SOURCE]), content: aContent(), isClaimed: true },
      want: [],
    },
    'does not wait for claims that were created later': {
      world: { content: aContent(), isClaimed: true },
      want: ['delete VolumeSnapshotContent'],
    },
    'is ignored if the content has another driver': {
      world: { content: aContent({ spec: { driver: 'x' } }) },
      want: [],
    },
    'loses its finalizers once': { world: { snapshot: going(['other']) }, want: [] },
  };
  for (const [name, { world, want }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(describePlan(decideVolumeSnapshot(aWorld({ snapshot: going(), ...world }))), want));
  }
  it('keeps the finalizers of other controllers', () => {
    const plan = decideVolumeSnapshot(aWorld({ snapshot: going(['other', SOURCE, BOUND]) }));
    assert.deepEqual(finalizersIn(plan), [['other']]);
  });
});

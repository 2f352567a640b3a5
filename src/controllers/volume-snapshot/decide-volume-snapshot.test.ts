import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  aClaim,
  aContent,
  aSnapshot,
  aVolume,
  deedsOf,
  GIB,
  NOW,
  SHARED,
} from '#controllers/storage/storage.fixture.ts';
import { decideVolumeSnapshot } from '#controllers/volume-snapshot/decide-volume-snapshot.ts';
import type { SnapshotWorld } from '#controllers/volume-snapshot/snapshot-world.ts';
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

/** A VolumeSnapshot that can be taken at once. */
const aWorld = (more: Partial<SnapshotWorld> = {}): SnapshotWorld => ({
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

const held = (metadata: object = {}) => aSnapshot({ metadata: { finalizers: [BOUND], ...metadata } });
const classless = aSnapshot({ spec: { source: { persistentVolumeClaimName: 'disk' } } });
const finalizersIn = ({ changes }: Plan) =>
  changes.flatMap((change) =>
    change.do === 'patch' && change.type.kind === 'VolumeSnapshot'
      ? [(change.patch.body as VolumeSnapshot).metadata.finalizers]
      : [],
  );

describe('a VolumeSnapshot of a claim', () => {
  const taken = ['patch VolumeSnapshot', 'create VolumeSnapshotContent'];
  const cases: Record<string, { world: Partial<SnapshotWorld>; want: string[] }> = {
    'is held before its content is made': { world: {}, want: taken },
    'is not held twice': { world: { snapshot: held() }, want: ['create VolumeSnapshotContent'] },
    'gets the default class': {
      world: { snapshot: classless, snapshotClass: undefined, defaultClasses: [aSnapshotClass()] },
      want: taken,
    },
    'is left to others whose class it names': { world: { snapshotClass: aSnapshotClass({ driver: 'x' }) }, want: [] },
    'is left to others whose volume it is of, where it names no class': {
      world: { snapshot: classless, snapshotClass: undefined, volume: aVolume({ metadata: { annotations: {} } }) },
      want: [],
    },
    'whose content is gone is not taken again': {
      world: {
        snapshot: aSnapshot({ status: { boundVolumeSnapshotContentName: 'snapcontent-s1', readyToUse: true } }),
      },
      want: ['SnapshotCreationFailed'],
    },
  };
  for (const [name, { world, want }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(deedsOf(decideVolumeSnapshot(aWorld(world))), want));
  }

  const faults: Record<string, { world: Partial<SnapshotWorld>; want: string }> = {
    'needs a claim': { world: { claim: undefined, volume: undefined }, want: 'PersistentVolumeClaim "disk" not found' },
    'needs a claim that has a volume': {
      world: { claim: aClaim(), volume: undefined },
      want: 'PersistentVolumeClaim "disk" is not bound to a volume',
    },
    'needs a claim that stays': {
      world: { claim: { ...BOUND_CLAIM, metadata: { ...BOUND_CLAIM.metadata, deletionTimestamp: NOW } } },
      want: 'PersistentVolumeClaim "disk" is being deleted',
    },
    'needs a volume that is bound to that very claim': {
      world: { volume: aVolume({ spec: { claimRef: { uid: 'other' } } }) },
      want: 'PersistentVolumeClaim "disk" is not bound to a volume',
    },
    'needs a volume of ours': {
      world: { volume: aVolume({ metadata: { annotations: {} } }) },
      want: 'PersistentVolume "pvc-u1" is not one of the driver local.selfsame.io',
    },
    'needs a volume that is filled': {
      world: { volume: aVolume({ copy: { handle: 'shared/x' } }) },
      want: 'PersistentVolume "pvc-u1" is itself still being filled from a snapshot',
    },
    'needs a class that is there': {
      world: { snapshotClass: undefined },
      want: 'VolumeSnapshotClass "local" not found',
    },
    'needs a default class where it names none': {
      world: { snapshot: classless, snapshotClass: undefined },
      want: 'default VolumeSnapshotClass not found',
    },
    'needs one default class': {
      world: {
        snapshot: classless,
        snapshotClass: undefined,
        defaultClasses: [aSnapshotClass(), aSnapshotClass()],
      },
      want: '2 default snapshot classes were found',
    },
    'needs a class without words that we do not know': {
      world: { snapshotClass: aSnapshotClass({ parameters: { tier: 'fast' } }) },
      want: 'VolumeSnapshotClass "local": parameters.tier is not known',
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

  it('says the same fault once', () => {
    const before = {
      time: '2029-01-01T00:00:00Z',
      message: 'failed to take snapshot: 2 default snapshot classes were found',
    };
    const snapshot = { ...classless, status: { readyToUse: false, error: before } };
    const classes = [aSnapshotClass(), aSnapshotClass()];
    const { status, events } = decideVolumeSnapshot(
      aWorld({ snapshot, snapshotClass: undefined, defaultClasses: classes }),
    );
    assert.deepEqual([status, events], [snapshot.status, []]);
  });

  it('writes the class that was taken for it', () => {
    const world = aWorld({ snapshot: classless, snapshotClass: undefined, defaultClasses: [aSnapshotClass()] });
    const [change] = decideVolumeSnapshot(world).changes;
    assert.ok(change?.do === 'patch');
    assert.deepEqual(change.patch.body, {
      metadata: { resourceVersion: '1', finalizers: [BOUND] },
      spec: { volumeSnapshotClassName: 'local' },
    });
  });
});

describe('the content that is made', () => {
  const contentFor = (world: Partial<SnapshotWorld>) => {
    const change = decideVolumeSnapshot(aWorld({ snapshot: held(), ...world })).changes[0];
    assert.ok(change?.do === 'create');
    return change.object as VolumeSnapshotContent;
  };

  it('says of what it is a snapshot, where, and with which others', () => {
    const set = { 'selfsame.io/snapshot-set': 'x', 'selfsame.io/snapshot-set-size': '2' };
    const instance = { 'selfsame.io/snapshot-instance': 'i' };
    const { metadata, spec } = contentFor({ snapshot: held({ annotations: { ...set, ...instance, other: 'y' } }) });
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
  const states: Record<string, { claim: SnapshotWorld['claim']; asked?: boolean; want: string | undefined }> = {
    'of the state of a VM is told from that of a disk': {
      claim: marked('x', { 'persistent-state-for': 'web' }),
      want: 'true',
    },
    'of a claim that only has the name of such a state is of a disk': {
      claim: marked('persistent-state-for-web'),
      want: undefined,
    },
    'of a claim of such a name is of state where the snapshot says so': {
      claim: marked('persistent-state-for-web'),
      asked: true,
      want: 'true',
    },
    'of a disk is never of state, whatever the snapshot says': { claim: BOUND_CLAIM, asked: true, want: undefined },
  };
  for (const [sentence, { claim, asked = false, want }] of Object.entries(states)) {
    it(sentence, () => {
      const snapshot = held(asked ? { annotations: { [STATE]: 'true' } } : {});
      assert.equal(contentFor({ snapshot, claim }).metadata.annotations?.[STATE], want);
    });
  }
  it('is for any node where every node reaches the volume', () => {
    const volume = aVolume({ storageClass: SHARED });
    const node = (copier?: string) =>
      contentFor({ volume, copier }).metadata.annotations?.['selfsame.io/snapshot-node'];
    assert.deepEqual([node('node-7'), node()], ['node-7', undefined]);
  });
});

describe('a VolumeSnapshot with a content', () => {
  const statusOf = (status?: VolumeSnapshotContent['status']) =>
    decideVolumeSnapshot(aWorld({ snapshot: held(), content: aContent({ status }) })).status;

  it('is bound to it at once', () => {
    assert.deepEqual(statusOf(), { boundVolumeSnapshotContentName: 'snapcontent-s1', readyToUse: false });
  });
  it('says what it says, in the units of people', () => {
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
  it('passes its fault on', () => {
    const error = { time: NOW, message: 'disk full' };
    assert.deepEqual(statusOf({ readyToUse: false, error })?.['error'], error);
  });

  const staticOne = aSnapshot({ spec: { source: { volumeSnapshotContentName: 'old' } } });
  const heldStatic = { ...staticOne, metadata: { ...staticOne.metadata, finalizers: [BOUND] } };
  const refer = (uid?: string, name = 'snap') =>
    aContent({ spec: { volumeSnapshotRef: { namespace: 'default', name, uid } } });
  const bare = { claim: undefined, volume: undefined, snapshotClass: undefined };
  const cases: Record<string, { world: Partial<SnapshotWorld>; want: string[] }> = {
    'takes over one that was made for its name': {
      world: { ...bare, snapshot: staticOne, content: refer() },
      want: ['patch VolumeSnapshot', 'patch VolumeSnapshotContent'],
    },
    'is held before it is bound': {
      world: { ...bare, snapshot: staticOne, content: refer('s1') },
      want: ['patch VolumeSnapshot'],
    },
    'is then bound': { world: { ...bare, snapshot: heldStatic, content: refer('s1') }, want: [] },
    'says what is missing of one that was made by hand': {
      world: {
        ...bare,
        snapshot: heldStatic,
        content: aContent({ spec: { source: { snapshotHandle: 'shared/x' } } }),
      },
      want: ['SnapshotCreationFailed'],
    },
    'is not bound to that of a namesake': {
      world: { ...bare, snapshot: heldStatic, content: refer('s0') },
      want: ['SnapshotCreationFailed'],
    },
    'is not bound to that of another': {
      world: { ...bare, snapshot: heldStatic, content: refer(undefined, 'other') },
      want: ['SnapshotCreationFailed'],
    },
    'is left to others whose content it is': {
      world: { snapshot: staticOne, content: aContent({ spec: { driver: 'x' } }) },
      want: [],
    },
    'says when it becomes ready': {
      world: { snapshot: held(), content: aContent({ status: { creationTime: 1, readyToUse: true } }) },
      want: ['SnapshotCreated', 'SnapshotReady'],
    },
  };
  for (const [name, { world, want }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(deedsOf(decideVolumeSnapshot(aWorld(world))), want));
  }

  it('is held as a source while volumes are made from it', () => {
    const content = aContent();
    const used = held({ finalizers: ['other', BOUND, SOURCE] });
    const decided = (world: Partial<SnapshotWorld>) =>
      finalizersIn(decideVolumeSnapshot(aWorld({ content, ...world })));
    assert.deepEqual(decided({ snapshot: held(), isClaimed: true }), [[BOUND, SOURCE]]);
    assert.deepEqual(decided({ snapshot: held(), isCopied: true }), [[BOUND, SOURCE]]);
    assert.deepEqual(decided({ snapshot: used, isCopied: true }), []);
    assert.deepEqual(decided({ snapshot: used }), [['other', BOUND]]);
  });
});

describe('a VolumeSnapshot that is to go', () => {
  const going = (finalizers = [BOUND]) => held({ deletionTimestamp: NOW, finalizers });
  const cases: Record<string, { world: Partial<SnapshotWorld>; want: string[] }> = {
    'takes its content along': { world: { content: aContent() }, want: ['delete VolumeSnapshotContent'] },
    'waits for it': { world: { content: aContent({ metadata: { deletionTimestamp: NOW } }) }, want: [] },
    'is let go when it is gone': { world: {}, want: ['patch VolumeSnapshot'] },
    'is let go also when nothing says any more whose it is': {
      world: { snapshotClass: undefined, claim: undefined, volume: undefined },
      want: ['patch VolumeSnapshot'],
    },
    'leaves a content that is to be retained': {
      world: { content: aContent({ spec: { deletionPolicy: 'Retain' } }) },
      want: ['patch VolumeSnapshot'],
    },
    'leaves the content of another': {
      world: { content: aContent({ spec: { volumeSnapshotRef: { namespace: 'default', name: 'snap', uid: 's0' } } }) },
      want: ['patch VolumeSnapshot'],
    },
    'waits while a volume is being filled from it': { world: { content: aContent(), isCopied: true }, want: [] },
    'waits for claims that were there before': {
      world: { snapshot: going([BOUND, SOURCE]), content: aContent(), isClaimed: true },
      want: [],
    },
    'does not wait for claims that came later': {
      world: { content: aContent(), isClaimed: true },
      want: ['delete VolumeSnapshotContent'],
    },
    'is left to others': { world: { content: aContent({ spec: { driver: 'x' } }) }, want: [] },
    'is let go once': { world: { snapshot: going(['other']) }, want: [] },
  };
  for (const [name, { world, want }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(deedsOf(decideVolumeSnapshot(aWorld({ snapshot: going(), ...world }))), want));
  }
  it('keeps the finalizers of others', () => {
    const plan = decideVolumeSnapshot(aWorld({ snapshot: going(['other', SOURCE, BOUND]) }));
    assert.deepEqual(finalizersIn(plan), [['other']]);
  });
});

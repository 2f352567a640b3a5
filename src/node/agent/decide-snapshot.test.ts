import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Stored } from '#kube/meta.ts';
import type { VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import {
  decideSet,
  decideSingle,
  GUEST_ENDED,
  isOurs,
  setOf,
  type DiskWorld,
  type SetWorld,
  type SnapshotAction,
} from '#node/agent/decide-snapshot.ts';
import type { CopyState } from '#node/hypervisor/hypervisor.ts';

interface Facts {
  readonly annotations?: Record<string, string>;
  readonly status?: VolumeSnapshotContent['status'];
  readonly deleted?: boolean;
  readonly finalizers?: string[];
  readonly policy?: 'Delete' | 'Retain';
  readonly driver?: string;
}

const ONLINE = {
  'selfsame.io/snapshot-node': 'n1',
  'selfsame.io/snapshot-instance': 'vmi-1',
  'selfsame.io/snapshot-set': 'set-1',
  'selfsame.io/snapshot-set-size': '2',
};

function aContent(name: string, facts: Facts = {}): Stored<VolumeSnapshotContent> {
  const { annotations = ONLINE, status, deleted = false, policy = 'Delete', driver = 'local.selfsame.io' } = facts;
  const { finalizers = ['selfsame.io/snapshot-data'] } = facts;
  const creationTimestamp = '2030-01-01T00:00:00Z';
  return {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotContent',
    metadata: {
      name,
      uid: `uid-${name}`,
      resourceVersion: '1',
      creationTimestamp,
      annotations,
      finalizers,
      ...(deleted ? { deletionTimestamp: creationTimestamp } : {}),
    },
    spec: { deletionPolicy: policy, driver, source: { volumeHandle: 'pv' }, volumeSnapshotRef: {} },
    ...(status === undefined ? {} : { status }),
  };
}

/** The state of the guest: no disk, and no copy that the hypervisor makes. */
function aState(name: string, facts: Facts = {}): DiskWorld {
  return { content: aContent(name, facts), copy: undefined, deviceId: undefined, isState: true };
}

function aDisk(name: string, facts: Facts & { copy?: CopyState; deviceId?: string | null } = {}): DiskWorld {
  const { copy, deviceId = 'disk-root' } = facts;
  return { content: aContent(name, facts), copy, deviceId: deviceId ?? undefined };
}

const COPYING: CopyState = { state: 'copying', doneBytes: 1, totalBytes: 2 };
const DONE: CopyState = { state: 'done' };
const FAILED: CopyState = { state: 'failed', message: 'no space left' };
const BEGUN = { creationTime: 7, readyToUse: false, snapshotHandle: 'node/n1/a' };
const READY = { ...BEGUN, readyToUse: true, restoreSize: 1 };
const BROKEN = { readyToUse: false, error: { message: 'it broke' } };

/** `start a b`, `fail a: why`. */
function told(action: SnapshotAction): string {
  switch (action.do) {
    case 'start':
      return `start ${action.disks.map(({ content }) => content.metadata.name).join(' ')}`;
    case 'tell':
      return `tell ${action.contents.map(({ metadata }) => metadata.name).join(' ')} ${action.creationTime}`;
    case 'fail':
      return `fail ${action.contents.map(({ metadata }) => metadata.name).join(' ')}: ${action.message}`;
    case 'remove':
      return `remove ${action.content.metadata.name}${action.data ? '' : ', not its data'}`;
    case 'lookAgain':
      return 'look again';
    case 'finish':
    case 'discard':
    case 'take':
      return `${action.do} ${action.content.metadata.name}`;
  }
}

const sets: Record<string, { disks: DiskWorld[]; guest?: SetWorld['guest']; want: string[] }> = {
  'waits until all of the set are known': { disks: [aDisk('a')], want: [] },
  'never begins a set whose size nobody can read': {
    disks: [aDisk('a', { annotations: { ...ONLINE, 'selfsame.io/snapshot-set-size': 'two' } })],
    want: [],
  },
  'copies all of them at one moment': { disks: [aDisk('a'), aDisk('b')], want: ['start a b'] },
  'waits for a guest that is still to start': {
    disks: [aDisk('a'), aDisk('b')],
    guest: 'starting',
    want: ['look again'],
  },
  'fails all where the guest has ended before': {
    disks: [aDisk('a'), aDisk('b')],
    guest: 'gone',
    want: [`fail a b: ${GUEST_ENDED}`],
  },
  'fails all where the guest has no such disk': {
    disks: [aDisk('a'), aDisk('b', { deviceId: null })],
    want: ['fail a b: the guest has no disk on this volume'],
  },
  'copies the state with the disks': { disks: [aDisk('a'), aState('s')], want: ['start a s'] },
  'waits with the state, too, for a guest that is still to start': {
    disks: [aDisk('a'), aState('s')],
    guest: 'starting',
    want: ['look again'],
  },
  'fails all where the guest has ended before its state was copied': {
    disks: [aDisk('a'), aState('s')],
    guest: 'gone',
    want: [`fail a s: ${GUEST_ENDED}`],
  },
  'fails the state that was not copied when the disks were': {
    disks: [aDisk('a', { copy: COPYING, status: BEGUN }), aState('s')],
    want: ['fail a s: the moment at which the other disks were copied has passed'],
  },
  'tells of the state that an earlier agent has copied': {
    disks: [aDisk('a', { copy: COPYING }), { ...aState('s'), copy: DONE }],
    want: ['tell a s undefined', 'look again'],
  },
  'finishes the state at once, while disks are still copied': {
    disks: [aDisk('a', { copy: COPYING, status: BEGUN }), aState('s', { status: BEGUN })],
    want: ['look again', 'finish s'],
  },
  'finishes the state also of a guest that has ended since': {
    disks: [aState('s', { status: BEGUN })],
    guest: 'gone',
    want: ['finish s'],
  },
  'only tells of copies that an earlier agent has begun': {
    disks: [aDisk('a', { copy: COPYING }), aDisk('b', { copy: DONE })],
    want: ['tell a b undefined', 'look again'],
  },
  'tells the same moment for all': {
    disks: [aDisk('a', { copy: COPYING, status: BEGUN }), aDisk('b', { copy: COPYING })],
    want: ['tell b 7', 'look again'],
  },
  'fails what cannot be copied at the moment of the others any more': {
    disks: [aDisk('a', { copy: COPYING, status: BEGUN }), aDisk('b')],
    want: ['fail a b: the moment at which the other disks were copied has passed'],
  },
  'looks again while it copies, and finishes what is done': {
    disks: [aDisk('a', { copy: COPYING, status: BEGUN }), aDisk('b', { copy: DONE, status: BEGUN })],
    want: ['look again', 'finish b'],
  },
  'finishes what was let go of because it was done': {
    disks: [aDisk('a', { status: BEGUN }), aDisk('b', { status: READY })],
    want: ['finish a'],
  },
  'does not trust what was let go of by a guest that has ended': {
    disks: [aDisk('a', { status: BEGUN }), aDisk('b', { status: READY })],
    guest: 'gone',
    want: [`fail a: ${GUEST_ENDED}`],
  },
  'finishes what was done before the guest ended': {
    disks: [aDisk('a', { copy: DONE, status: BEGUN }), aDisk('b', { status: READY })],
    guest: 'gone',
    want: ['finish a'],
  },
  'fails all where one copy has failed': {
    disks: [aDisk('a', { copy: FAILED, status: BEGUN }), aDisk('b', { copy: COPYING, status: BEGUN })],
    want: ['fail a b: no space left'],
  },
  'fails the rest of a set that has failed, and what is left of it goes': {
    disks: [aDisk('a', { status: BROKEN }), aDisk('b', { copy: COPYING, status: BEGUN })],
    want: ['discard a', 'fail b: it broke'],
  },
  'never tries again what has failed': {
    disks: [aDisk('a', { status: BROKEN }), aDisk('b', { status: BROKEN })],
    want: ['discard a', 'discard b'],
  },
  'leaves alone what is ready': { disks: [aDisk('a', { status: READY }), aDisk('b', { status: READY })], want: [] },
  'removes what is deleted while the others go on': {
    disks: [aDisk('a', { deleted: true, status: BEGUN, copy: COPYING }), aDisk('b', { copy: COPYING, status: BEGUN })],
    want: ['remove a', 'look again'],
  },
};

describe('a set of disks that a guest has open', () => {
  for (const [sentence, { disks, guest = 'running', want }] of Object.entries(sets)) {
    it(sentence, () => assert.deepEqual(decideSet({ disks, guest }).map(told), want));
  }
});

const singles: Record<string, { facts: Facts; want: string[] }> = {
  'is taken': { facts: {}, want: ['take a'] },
  'is tried again after an error': { facts: { status: BROKEN }, want: ['take a'] },
  'is left alone when it is ready': { facts: { status: READY }, want: [] },
  'is removed': { facts: { status: READY, deleted: true }, want: ['remove a'] },
  'is removed before it was made': { facts: { deleted: true, policy: 'Retain' }, want: ['remove a'] },
  'keeps its data where that is asked for': {
    facts: { status: READY, deleted: true, policy: 'Retain' },
    want: ['remove a, not its data'],
  },
  'is removed once': { facts: { deleted: true, finalizers: ['other.io/x'] }, want: [] },
};

describe('the snapshot of a disk that nobody has open', () => {
  for (const [sentence, { facts, want }] of Object.entries(singles)) {
    it(sentence, () => assert.deepEqual(decideSingle(aContent('a', facts)).map(told), want));
  }
});

describe('contents', () => {
  it('are ours where they name our driver and this node', () => {
    assert.equal(isOurs(aContent('a'), 'n1'), true);
    assert.equal(isOurs(aContent('a'), 'n2'), false);
    assert.equal(isOurs(aContent('a', { annotations: {} }), 'n1'), false);
    assert.equal(isOurs(aContent('a', { driver: 'csi.example.com' }), 'n1'), false);
  });

  it('belong together where set and instance are the same', () => {
    assert.equal(setOf(aContent('a')), setOf(aContent('b')));
    const other = { ...ONLINE, 'selfsame.io/snapshot-instance': 'vmi-2' };
    assert.notEqual(setOf(aContent('a')), setOf(aContent('a', { annotations: other })));
    assert.equal(setOf(aContent('a', { annotations: { 'selfsame.io/snapshot-node': 'n1' } })), undefined);
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Stored } from '#kube/meta.ts';
import type { VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import {
  decideSet,
  decideSingle,
  GUEST_ENDED,
  isAssignedToNode,
  snapshotSetKey,
  type DiskWorld,
  type SetWorld,
  type SnapshotAction,
} from '#node/storage/decide-snapshot.ts';
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

/** The persistent state of the guest, which the hypervisor does not copy. */
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
const STARTED = { creationTime: 7, readyToUse: false, snapshotHandle: 'node/n1/a' };
const READY = { ...STARTED, readyToUse: true, restoreSize: 1 };
const BROKEN = { readyToUse: false, error: { message: 'it broke' } };

/** Returns an action in short form, for example `start a b` or `fail a: why`. */
function summarizeAction(action: SnapshotAction): string {
  switch (action.do) {
    case 'start':
      return `start ${action.disks.map(({ content }) => content.metadata.name).join(' ')}`;
    case 'reportStarted':
      return `reportStarted ${action.contents.map(({ metadata }) => metadata.name).join(' ')} ${action.creationTime}`;
    case 'fail':
      return `fail ${action.contents.map(({ metadata }) => metadata.name).join(' ')}: ${action.message}`;
    case 'remove':
      return `remove ${action.content.metadata.name}${action.data ? '' : ', not its data'}`;
    case 'recheck':
      return 'recheck';
    case 'finish':
    case 'discard':
    case 'take':
      return `${action.do} ${action.content.metadata.name}`;
  }
}

const sets: Record<string, { disks: DiskWorld[]; guest?: SetWorld['guest']; want: string[] }> = {
  'waits until the set is complete': { disks: [aDisk('a')], want: [] },
  'never starts a set with an invalid size': {
    disks: [aDisk('a', { annotations: { ...ONLINE, 'selfsame.io/snapshot-set-size': 'two' } })],
    want: [],
  },
  'copies all disks at the same time': { disks: [aDisk('a'), aDisk('b')], want: ['start a b'] },
  'waits for a guest that has not started': {
    disks: [aDisk('a'), aDisk('b')],
    guest: 'starting',
    want: ['recheck'],
  },
  'fails all if the guest has ended': {
    disks: [aDisk('a'), aDisk('b')],
    guest: 'gone',
    want: [`fail a b: ${GUEST_ENDED}`],
  },
  'fails all if the guest does not have one of the disks': {
    disks: [aDisk('a'), aDisk('b', { deviceId: null })],
    want: ['fail a b: the guest has no disk on this volume'],
  },
  'copies the state with the disks': { disks: [aDisk('a'), aState('s')], want: ['start a s'] },
  'waits with the state for a guest that has not started': {
    disks: [aDisk('a'), aState('s')],
    guest: 'starting',
    want: ['recheck'],
  },
  'fails all if the guest ended before its state was copied': {
    disks: [aDisk('a'), aState('s')],
    guest: 'gone',
    want: [`fail a s: ${GUEST_ENDED}`],
  },
  'fails all if the state was not copied together with the disks': {
    disks: [aDisk('a', { copy: COPYING, status: STARTED }), aState('s')],
    want: ['fail a s: the other disks of the snapshot were copied at an earlier time'],
  },
  'reports the state that an earlier agent has copied': {
    disks: [aDisk('a', { copy: COPYING }), { ...aState('s'), copy: DONE }],
    want: ['reportStarted a s undefined', 'recheck'],
  },
  'finishes the state while the disks are being copied': {
    disks: [aDisk('a', { copy: COPYING, status: STARTED }), aState('s', { status: STARTED })],
    want: ['recheck', 'finish s'],
  },
  'finishes the state of a guest that has ended since': {
    disks: [aState('s', { status: STARTED })],
    guest: 'gone',
    want: ['finish s'],
  },
  'reports copies that an earlier agent has started': {
    disks: [aDisk('a', { copy: COPYING }), aDisk('b', { copy: DONE })],
    want: ['reportStarted a b undefined', 'recheck'],
  },
  'reports the same creation time for all': {
    disks: [aDisk('a', { copy: COPYING, status: STARTED }), aDisk('b', { copy: COPYING })],
    want: ['reportStarted b 7', 'recheck'],
  },
  'fails all if a disk was not copied together with the others': {
    disks: [aDisk('a', { copy: COPYING, status: STARTED }), aDisk('b')],
    want: ['fail a b: the other disks of the snapshot were copied at an earlier time'],
  },
  'checks again during a copy, and finishes complete copies': {
    disks: [aDisk('a', { copy: COPYING, status: STARTED }), aDisk('b', { copy: DONE, status: STARTED })],
    want: ['recheck', 'finish b'],
  },
  'finishes a complete copy that the hypervisor has forgotten': {
    disks: [aDisk('a', { status: STARTED }), aDisk('b', { status: READY })],
    want: ['finish a'],
  },
  'fails a forgotten copy if the guest has ended': {
    disks: [aDisk('a', { status: STARTED }), aDisk('b', { status: READY })],
    guest: 'gone',
    want: [`fail a: ${GUEST_ENDED}`],
  },
  'finishes a copy that was complete before the guest ended': {
    disks: [aDisk('a', { copy: DONE, status: STARTED }), aDisk('b', { status: READY })],
    guest: 'gone',
    want: ['finish a'],
  },
  'fails all if one copy has failed': {
    disks: [aDisk('a', { copy: FAILED, status: STARTED }), aDisk('b', { copy: COPYING, status: STARTED })],
    want: ['fail a b: no space left'],
  },
  'fails the rest of a failed set and discards its data': {
    disks: [aDisk('a', { status: BROKEN }), aDisk('b', { copy: COPYING, status: STARTED })],
    want: ['discard a', 'fail b: it broke'],
  },
  'never tries a failed set again': {
    disks: [aDisk('a', { status: BROKEN }), aDisk('b', { status: BROKEN })],
    want: ['discard a', 'discard b'],
  },
  'does nothing for a ready set': { disks: [aDisk('a', { status: READY }), aDisk('b', { status: READY })], want: [] },
  'removes a deleted content while the others continue': {
    disks: [
      aDisk('a', { deleted: true, status: STARTED, copy: COPYING }),
      aDisk('b', { copy: COPYING, status: STARTED }),
    ],
    want: ['remove a', 'recheck'],
  },
};

describe('a set of disks that a guest has open', () => {
  for (const [sentence, { disks, guest = 'running', want }] of Object.entries(sets)) {
    it(sentence, () => assert.deepEqual(decideSet({ disks, guest }).map(summarizeAction), want));
  }
});

const singles: Record<string, { facts: Facts; want: string[] }> = {
  'is taken': { facts: {}, want: ['take a'] },
  'is tried again after an error': { facts: { status: BROKEN }, want: ['take a'] },
  'needs no action when it is ready': { facts: { status: READY }, want: [] },
  'is removed': { facts: { status: READY, deleted: true }, want: ['remove a'] },
  'is removed with its data if it was not ready': { facts: { deleted: true, policy: 'Retain' }, want: ['remove a'] },
  'keeps its data with deletion policy Retain': {
    facts: { status: READY, deleted: true, policy: 'Retain' },
    want: ['remove a, not its data'],
  },
  'is not removed again without its finalizer': { facts: { deleted: true, finalizers: ['other.io/x'] }, want: [] },
};

describe('the snapshot of a disk that no guest has open', () => {
  for (const [sentence, { facts, want }] of Object.entries(singles)) {
    it(sentence, () => assert.deepEqual(decideSingle(aContent('a', facts)).map(summarizeAction), want));
  }
});

describe('snapshot contents', () => {
  it('are assigned to a node by driver and annotation', () => {
    assert.equal(isAssignedToNode(aContent('a'), 'n1'), true);
    assert.equal(isAssignedToNode(aContent('a'), 'n2'), false);
    assert.equal(isAssignedToNode(aContent('a', { annotations: {} }), 'n1'), false);
    assert.equal(isAssignedToNode(aContent('a', { driver: 'csi.example.com' }), 'n1'), false);
  });

  it('belong to one set if set and instance are equal', () => {
    assert.equal(snapshotSetKey(aContent('a')), snapshotSetKey(aContent('b')));
    const other = { ...ONLINE, 'selfsame.io/snapshot-instance': 'vmi-2' };
    assert.notEqual(snapshotSetKey(aContent('a')), snapshotSetKey(aContent('a', { annotations: other })));
    assert.equal(snapshotSetKey(aContent('a', { annotations: { 'selfsame.io/snapshot-node': 'n1' } })), undefined);
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { type ClaimUser, decideClaimHold, HOTPLUGGED_FINALIZER } from '#controllers/vmi/claim-holds.ts';
import { aClaim, aPod, aVmi, NOW } from '#controllers/vmi/vmi-world.fixture.ts';
import type { ObjectMeta } from '#kube/meta.ts';

const FOREIGN = 'kubernetes.io/pvc-protection';
const FREE = { finalizers: [FOREIGN] };
const BOUND = { volumeName: 'pv' };
const HELD = { finalizers: [FOREIGN, HOTPLUGGED_FINALIZER] };

interface Wish {
  readonly hotpluggable?: boolean;
  readonly plugged?: boolean;
  readonly inPod?: boolean;
  readonly hasPod?: boolean;
  readonly status?: VmiStatus;
}

/** An instance with the claim `data` in its spec, and that claim, or none, in its pod. */
function user({ hotpluggable = true, plugged = true, inPod = false, hasPod = true, status }: Wish = {}): ClaimUser {
  const volume = { name: 'd', persistentVolumeClaim: { claimName: 'data', hotpluggable } };
  const spec = { domain: { devices: { disks: [{ name: 'd', plugged }] } }, volumes: [volume] };
  const pod = aPod({ nodeName: 'n' });
  const volumes = inPod ? [{ name: 'd', persistentVolumeClaim: { claimName: 'data' } }] : [];
  const vmi = aVmi({ spec, status: { phase: 'Running', ...status } });
  return { vmi, nodeExists: true, ...(hasPod ? { pod: { ...pod, spec: { ...pod.spec, volumes } } } : {}) };
}

const told = (claimName: string): VmiStatus => ({
  volumeStatus: [{ name: 'd', hotplugVolume: {}, persistentVolumeClaimInfo: { claimName } }],
});
/** It has another volume by now, or none. */
const leaving = (status: VmiStatus): ClaimUser => ({
  vmi: aVmi({ status: { phase: 'Running', ...status } }),
  pod: aPod(),
  nodeExists: true,
});

const cases: Record<string, { users: readonly ClaimUser[]; meta: ObjectMeta; want: 'hold' | 'release' | undefined }> = {
  'a claim that nobody has is left alone': { users: [], meta: FREE, want: undefined },
  'one that was plugged in is held': { users: [user()], meta: FREE, want: 'hold' },
  once: { users: [user()], meta: HELD, want: undefined },
  'one that the pod names is held by that': { users: [user({ inPod: true })], meta: FREE, want: undefined },
  'one that does not come and go, too': { users: [user({ hotpluggable: false })], meta: FREE, want: undefined },
  'one that is only attached is not held': { users: [user({ plugged: false })], meta: FREE, want: undefined },
  'nor is one of an instance that has no pod yet': {
    users: [user({ hasPod: false, status: { phase: 'Pending' } })],
    meta: FREE,
    want: undefined,
  },
  'one that the guest has not let go of stays held': { users: [leaving(told('data'))], meta: HELD, want: undefined },
  'also when the disk has another claim by now': { users: [leaving(told('data'))], meta: FREE, want: 'hold' },
  'one that the guest has let go of is free': { users: [leaving({})], meta: HELD, want: 'release' },
  'and with the instance': { users: [], meta: HELD, want: 'release' },
  'and after the end of the guest': { users: [user({ status: { phase: 'Failed' } })], meta: HELD, want: 'release' },
  'one that another guest has, too, stays held': { users: [leaving({}), user()], meta: HELD, want: undefined },
  'one whose pod is gone, but not the guest, stays held': {
    users: [user({ hasPod: false, status: told('data') })],
    meta: HELD,
    want: undefined,
  },
  'it is too late for one that is being deleted': {
    users: [user()],
    meta: { ...FREE, deletionTimestamp: NOW },
    want: undefined,
  },
  'one that is being deleted goes when it is free': {
    users: [],
    meta: { ...HELD, deletionTimestamp: NOW },
    want: 'release',
  },
};

for (const [name, { users, meta, want }] of Object.entries(cases)) {
  test(name, () => {
    const { changes } = decideClaimHold({ claim: aClaim('data', { metadata: meta, spec: BOUND }), users });
    const bodies = changes.map((change) => (change.do === 'patch' ? change.patch.body : change.do));
    const { finalizers } = want === 'hold' ? HELD : FREE;
    assert.deepEqual(bodies, want === undefined ? [] : [{ metadata: { resourceVersion: '1', finalizers } }]);
  });
}

const SELECTED = 'volume.kubernetes.io/selected-node';
const waiting: Record<string, { user: ClaimUser; meta: ObjectMeta; want: ObjectMeta[] }> = {
  'a claim that waits for its first consumer is held, and told where that is': {
    user: user(),
    meta: FREE,
    want: [{ ...HELD, annotations: { [SELECTED]: 'n' } }],
  },
  'one that is held is told, too': { user: user(), meta: HELD, want: [{ annotations: { [SELECTED]: 'n' } }] },
  once: { user: user(), meta: { ...HELD, annotations: { [SELECTED]: 'other' } }, want: [] },
  'not of a node that the guest is about to leave': {
    user: user({ status: { migrationState: { migrationUid: 'm' } } }),
    meta: HELD,
    want: [],
  },
  'but of the one to which it has moved': {
    user: user({ status: { migrationState: { migrationUid: 'm', completed: true } } }),
    meta: HELD,
    want: [{ annotations: { [SELECTED]: 'n' } }],
  },
  'not of a node that is gone': { user: { ...user(), nodeExists: false }, meta: HELD, want: [] },
  'nor where the pod names it, and its scheduler says so': { user: user({ inPod: true }), meta: FREE, want: [] },
};

for (const [name, { user: one, meta, want }] of Object.entries(waiting)) {
  test(`unbound: ${name}`, () => {
    const { changes } = decideClaimHold({ claim: aClaim('data', { metadata: meta }), users: [one] });
    const bodies = changes.map((change) => (change.do === 'patch' ? change.patch.body : change.do));
    assert.deepEqual(
      bodies,
      want.map((metadata) => ({ metadata: { resourceVersion: '1', ...metadata } })),
    );
  });
}

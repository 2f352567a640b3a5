import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { objectKey } from '#client/object-key.ts';
import {
  type ClaimUser,
  decideClaimHold,
  defineClaimHolds,
  HOTPLUGGED_FINALIZER,
} from '#controllers/vmi/claim-holds.ts';
import { aClaim, aPod, aVmi, NOW } from '#controllers/vmi/testing/vmi-world.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PODS } from '#kube/core-kinds.ts';
import type { ObjectMeta } from '#kube/meta.ts';
import { startController } from '#runtime/controller.ts';
import { USE_RECHECK_MS } from '#runtime/live-use.ts';
import { startLagging } from '#runtime/testing/lagging-controllers.ts';

const FOREIGN = 'kubernetes.io/pvc-protection';
const FREE = { finalizers: [FOREIGN] };
const BOUND = { volumeName: 'pv' };
const HELD = { finalizers: [FOREIGN, HOTPLUGGED_FINALIZER] };

interface UserOverrides {
  readonly hotpluggable?: boolean;
  readonly plugged?: boolean;
  readonly inPod?: boolean;
  readonly hasPod?: boolean;
  readonly status?: VmiStatus;
}

/** Returns an instance with the claim `data` in its spec and, if `inPod`, in its pod. */
function user({
  hotpluggable = true,
  plugged = true,
  inPod = false,
  hasPod = true,
  status,
}: UserOverrides = {}): ClaimUser {
  const volume = { name: 'd', persistentVolumeClaim: { claimName: 'data', hotpluggable } };
  const spec = { domain: { devices: { disks: [{ name: 'd', plugged }] } }, volumes: [volume] };
  const pod = aPod({ nodeName: 'n' });
  const volumes = inPod ? [{ name: 'd', persistentVolumeClaim: { claimName: 'data' } }] : [];
  const vmi = aVmi({ spec, status: { phase: 'Running', ...status } });
  return { vmi, nodeExists: true, ...(hasPod ? { pod: { ...pod, spec: { ...pod.spec, volumes } } } : {}) };
}

const statusWithClaim = (claimName: string): VmiStatus => ({
  volumeStatus: [{ name: 'd', hotplugVolume: {}, persistentVolumeClaimInfo: { claimName } }],
});
/** Returns an instance whose spec no longer has the claim. */
const aDetachingUser = (status: VmiStatus): ClaimUser => ({
  vmi: aVmi({ status: { phase: 'Running', ...status } }),
  pod: aPod(),
  nodeExists: true,
});

const cases: Record<string, { users: readonly ClaimUser[]; meta: ObjectMeta; want: 'hold' | 'release' | undefined }> = {
  'a claim without users is left alone': { users: [], meta: FREE, want: undefined },
  'a hotplugged claim is held': { users: [user()], meta: FREE, want: 'hold' },
  once: { users: [user()], meta: HELD, want: undefined },
  'a claim that the pod names is not held': { users: [user({ inPod: true })], meta: FREE, want: undefined },
  'a claim that is not hotpluggable is not held': {
    users: [user({ hotpluggable: false })],
    meta: FREE,
    want: undefined,
  },
  'a claim that is only attached is not held': { users: [user({ plugged: false })], meta: FREE, want: undefined },
  'a claim of an instance without a pod is not held': {
    users: [user({ hasPod: false, status: { phase: 'Pending' } })],
    meta: FREE,
    want: undefined,
  },
  'a claim that the guest has not released stays held': {
    users: [aDetachingUser(statusWithClaim('data'))],
    meta: HELD,
    want: undefined,
  },
  'a claim that the guest has not released is held although the disk has another claim by now': {
    users: [aDetachingUser(statusWithClaim('data'))],
    meta: FREE,
    want: 'hold',
  },
  'a claim that the guest has released is released': { users: [aDetachingUser({})], meta: HELD, want: 'release' },
  'a claim is released when the instance is gone': { users: [], meta: HELD, want: 'release' },
  'a claim is released after the end of the guest': {
    users: [user({ status: { phase: 'Failed' } })],
    meta: HELD,
    want: 'release',
  },
  'a claim that another guest uses stays held': { users: [aDetachingUser({}), user()], meta: HELD, want: undefined },
  'a claim stays held if the pod is gone but not the guest': {
    users: [user({ hasPod: false, status: statusWithClaim('data') })],
    meta: HELD,
    want: undefined,
  },
  'a claim under deletion is not held any more': {
    users: [user()],
    meta: { ...FREE, deletionTimestamp: NOW },
    want: undefined,
  },
  'a held claim under deletion is released when it has no users': {
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
  'a claim that waits for its first consumer is held and gets the node': {
    user: user(),
    meta: FREE,
    want: [{ ...HELD, annotations: { [SELECTED]: 'n' } }],
  },
  'a held claim gets the node, too': { user: user(), meta: HELD, want: [{ annotations: { [SELECTED]: 'n' } }] },
  once: { user: user(), meta: { ...HELD, annotations: { [SELECTED]: 'other' } }, want: [] },
  'a claim does not get a node that the guest is about to leave': {
    user: user({ status: { migrationState: { migrationUid: 'm' } } }),
    meta: HELD,
    want: [],
  },
  'a claim gets the node to which the guest has migrated': {
    user: user({ status: { migrationState: { migrationUid: 'm', completed: true } } }),
    meta: HELD,
    want: [{ annotations: { [SELECTED]: 'n' } }],
  },
  'a claim does not get a node that is gone': { user: { ...user(), nodeExists: false }, meta: HELD, want: [] },
  'a claim that the pod names gets no node: the scheduler sets it': {
    user: user({ inPod: true }),
    meta: FREE,
    want: [],
  },
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

test('a claim under deletion is held while an instance names it that the cache does not show yet', async (t) => {
  const { api, clock, rest } = await startLagging(t, (parts) => startController(defineClaimHolds(parts), parts), {
    types: [PERSISTENT_VOLUME_CLAIMS, VIRTUAL_MACHINE_INSTANCES, PODS, NODES],
    lagging: VIRTUAL_MACHINE_INSTANCES,
  });
  const { vmi } = user();
  api.create(VIRTUAL_MACHINE_INSTANCES, vmi);
  const claim = { ...aClaim('data'), metadata: { namespace: vmi.metadata.namespace, name: 'data', ...HELD } };
  api.create(PERSISTENT_VOLUME_CLAIMS, claim);
  const key = objectKey(claim);
  api.delete(PERSISTENT_VOLUME_CLAIMS, key);
  await rest();
  assert.deepEqual(api.get(PERSISTENT_VOLUME_CLAIMS, key).metadata.finalizers, HELD.finalizers);
  api.remove(VIRTUAL_MACHINE_INSTANCES, vmi.metadata);
  await clock.advance(USE_RECHECK_MS);
  await rest();
  assert.deepEqual(api.get(PERSISTENT_VOLUME_CLAIMS, key).metadata.finalizers, [FOREIGN]);
});

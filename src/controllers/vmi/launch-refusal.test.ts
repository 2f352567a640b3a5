/** The launch of an instance with persistent state: its claim, its pod, and what it reports meanwhile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { concludeVmi, decideVmi } from '#controllers/vmi/decide-vmi.ts';
import { aClaim, aVmi, aVolume, aWorld } from '#controllers/vmi/testing/vmi-world.ts';
import type { VmiStateView, VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { findCondition } from '#kube/conditions.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';

const CREATE_FAILED = 'FailedBackendStorageCreate';
const NOT_READY = 'BackendStorageNotReady';
const tpm = { domain: { devices: { tpm: { persistent: true } } } };

const storage = {
  storageClassName: 'local',
  volumeMode: 'Filesystem',
  accessMode: 'ReadWriteOnce',
  size: '10Mi',
} as const;
const wanted: VmiStateView = { kind: 'wanted', storage };
const there = (
  phase: NonNullable<PersistentVolumeClaim['status']>['phase'],
  more: Partial<VmiStateView & { kind: 'exists' }> = {},
): VmiStateView => {
  const spec = phase === 'Bound' ? { volumeName: 'pv' } : {};
  return { kind: 'exists', waitsForConsumer: false, claim: aClaim('state', { spec, status: { phase } }), ...more };
};
const worldOf = (state: VmiStateView, status?: VmiStatus): VmiWorld =>
  aWorld({ vmi: aVmi({ spec: tpm, ...(status && { status }) }), state });

interface Case {
  readonly state: VmiStateView;
  readonly want: readonly string[];
  /** Reason and message of the condition Synchronized. */
  readonly condition?: readonly [reason: string, message: string];
  readonly events?: readonly string[];
}

const pending = [NOT_READY, 'PVC pending: default/state is not bound yet'] as const;

const cases: Record<string, Case> = {
  'the claim is created before the pod': { state: wanted, want: ['create PersistentVolumeClaim'] },
  'nothing is created if there is no storage': {
    state: { kind: 'impossible', problem: 'no class' },
    want: [],
    condition: [CREATE_FAILED, 'no class'],
    events: [CREATE_FAILED],
  },
  'the pod is created when the claim is bound': {
    state: there('Bound', { volume: aVolume('pv') }),
    want: ['create Pod'],
  },
  'no pod is created before the location of the state is known': { state: there('Bound'), want: [] },
  'no pod is created while the claim is not bound': { state: there('Pending'), want: [], condition: pending },
  'no pod is created while the claim has no phase': { state: there(undefined), want: [], condition: pending },
  'the pod is created for a claim that waits for its first consumer': {
    state: there('Pending', { waitsForConsumer: true }),
    want: ['create Pod'],
  },
  'no pod is created for a claim that is lost': {
    state: there('Lost', { waitsForConsumer: true }),
    want: [],
    condition: [NOT_READY, 'backend storage PVC lost: the volume of default/state is gone'],
    events: [NOT_READY],
  },
};
for (const [name, { state, want, condition, events = [] }] of Object.entries(cases)) {
  test(name, () => {
    const plan = decideVmi(worldOf(state));
    const changes = plan.changes.map((change) => `${change.do} ${change.type.kind}`);
    assert.deepEqual(changes, want);
    const status = plan.status as VmiStatus;
    const { reason, message } = findCondition(status.conditions, 'Synchronized') ?? {};
    assert.deepEqual(reason === undefined ? undefined : [reason, message], condition);
    const reasonsOf = (world: VmiWorld) => decideVmi(world).events?.map((event) => event.reason);
    assert.deepEqual(reasonsOf(worldOf(state)), events);
    assert.deepEqual(reasonsOf(worldOf(state, status)), [], 'it is reported once');
  });
}

test('no state claim is created while a disk is missing', () => {
  const volumes = [{ name: 'root', persistentVolumeClaim: { claimName: 'disk' } }];
  const world = aWorld({ vmi: aVmi({ spec: { ...tpm, volumes } }), claims: new Map(), state: wanted });
  assert.deepEqual(decideVmi(world).changes, []);
});

test('a claim that is created again has the same name', () => {
  const names = [1, 2].map(() => {
    const [change] = decideVmi(worldOf(wanted)).changes;
    return change?.do === 'create' ? change.object.metadata.name : undefined;
  });
  assert.match(names[0] ?? '', /^persistent-state-for-db-[0-9a-f]{5}$/);
  assert.equal(names[0], names[1]);
});

test('the reason why no claim could be created is reported until there is one', () => {
  const world = worldOf(wanted, { phase: 'Pending' });
  const [change] = decideVmi(world).changes;
  assert.ok(change !== undefined);
  const failed = concludeVmi(world, [{ change, error: new Error('quota') }]) as VmiStatus;
  const synchronizedOf = ({ conditions }: VmiStatus) => findCondition(conditions, 'Synchronized');
  assert.deepEqual(
    [synchronizedOf(failed)?.reason, synchronizedOf(failed)?.message],
    [CREATE_FAILED, 'failed to create backend storage: quota'],
  );
  const next = (state: VmiStateView) => synchronizedOf(decideVmi(worldOf(state, failed)).status as VmiStatus);
  assert.equal(next(wanted)?.message, synchronizedOf(failed)?.message);
  assert.equal(next(there('Bound', { volume: aVolume('pv') })), undefined);
});

/** What an instance with persistent state does before its pod, and says meanwhile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { concludeVmi, decideVmi } from '#controllers/vmi/decide-vmi.ts';
import { aClaim, aVmi, aVolume, aWorld } from '#controllers/vmi/vmi-world.fixture.ts';
import type { StateView, VmiWorld } from '#controllers/vmi/vmi-world.ts';
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
const wanted: StateView = { is: 'wanted', storage };
const there = (
  phase: NonNullable<PersistentVolumeClaim['status']>['phase'],
  more: Partial<StateView & { is: 'there' }> = {},
): StateView => {
  const spec = phase === 'Bound' ? { volumeName: 'pv' } : {};
  return { is: 'there', waitsForConsumer: false, claim: aClaim('state', { spec, status: { phase } }), ...more };
};
const worldOf = (state: StateView, status?: VmiStatus): VmiWorld =>
  aWorld({ vmi: aVmi({ spec: tpm, ...(status && { status }) }), state });

interface Case {
  readonly state: StateView;
  readonly want: readonly string[];
  /** Of the condition Synchronized. */
  readonly says?: readonly [reason: string, message: string];
  readonly events?: readonly string[];
}

const pending = [NOT_READY, 'PVC pending: default/state is not bound yet'] as const;

const cases: Record<string, Case> = {
  'a claim is made before the pod': { state: wanted, want: ['create PersistentVolumeClaim'] },
  'nothing is made where it has no place': {
    state: { is: 'impossible', problem: 'no class' },
    want: [],
    says: [CREATE_FAILED, 'no class'],
    events: [CREATE_FAILED],
  },
  'the pod is made when the claim is bound': {
    state: there('Bound', { volume: aVolume('pv') }),
    want: ['create Pod'],
  },
  'no pod is made before it is known where the state lies': { state: there('Bound'), want: [] },
  'no pod is made while the claim is not bound': { state: there('Pending'), want: [], says: pending },
  'nor while nobody has looked at it': { state: there(undefined), want: [], says: pending },
  'a claim that waits for its consumer gets one': {
    state: there('Pending', { waitsForConsumer: true }),
    want: ['create Pod'],
  },
  'no pod is made for state that is lost': {
    state: there('Lost', { waitsForConsumer: true }),
    want: [],
    says: [NOT_READY, 'backend storage PVC lost: the volume of default/state is gone'],
    events: [NOT_READY],
  },
};
for (const [name, { state, want, says, events = [] }] of Object.entries(cases)) {
  test(name, () => {
    const plan = decideVmi(worldOf(state));
    const deeds = plan.changes.map((change) => `${change.do} ${change.type.kind}`);
    assert.deepEqual(deeds, want);
    const status = plan.status as VmiStatus;
    const { reason, message } = findCondition(status.conditions, 'Synchronized') ?? {};
    assert.deepEqual(reason === undefined ? undefined : [reason, message], says);
    const told = (world: VmiWorld) => decideVmi(world).events?.map((event) => event.reason);
    assert.deepEqual(told(worldOf(state)), events);
    assert.deepEqual(told(worldOf(state, status)), [], 'it is told once');
  });
}

test('no claim for state is made while a disk is missing', () => {
  const volumes = [{ name: 'root', persistentVolumeClaim: { claimName: 'disk' } }];
  const world = aWorld({ vmi: aVmi({ spec: { ...tpm, volumes } }), claims: new Map(), state: wanted });
  assert.deepEqual(decideVmi(world).changes, []);
});

test('made again, the claim has the same name', () => {
  const names = [1, 2].map(() => {
    const [change] = decideVmi(worldOf(wanted)).changes;
    return change?.do === 'create' ? change.object.metadata.name : undefined;
  });
  assert.match(names[0] ?? '', /^persistent-state-for-db-[0-9a-f]{5}$/);
  assert.equal(names[0], names[1]);
});

test('why no claim could be made is told until there is one', () => {
  const world = worldOf(wanted, { phase: 'Pending' });
  const [change] = decideVmi(world).changes;
  assert.ok(change !== undefined);
  const failed = concludeVmi(world, [{ change, error: new Error('quota') }]) as VmiStatus;
  const said = ({ conditions }: VmiStatus) => findCondition(conditions, 'Synchronized');
  assert.deepEqual(
    [said(failed)?.reason, said(failed)?.message],
    [CREATE_FAILED, 'failed to create backend storage: quota'],
  );
  const next = (state: StateView) => said(decideVmi(worldOf(state, failed)).status as VmiStatus);
  assert.equal(next(wanted)?.message, said(failed)?.message);
  assert.equal(next(there('Bound', { volume: aVolume('pv') })), undefined);
});

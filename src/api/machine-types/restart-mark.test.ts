import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isMarkedFor, judgeMark, markFor, restartMarkOf } from '#api/machine-types/restart-mark.ts';
import { aVm, aVmi, type VmiOverrides, type VmOverrides } from '#api/machine-types/transition.fixture.ts';

const OLD = 'pc-q35-rhel8.2.0';
const NEW = 'pc-q35-rhel9.2.0';
const bound = (uid: string) => ({ machineTypeRestartRequired: true, machineTypeRestartInstanceUID: uid });
const UNBOUND = { machineTypeRestartRequired: true };
const OFF = { machineTypeRestartRequired: false };

interface Case {
  readonly vm: VmOverrides;
  readonly vmi?: VmiOverrides;
  readonly want: object;
  /** The mark that the Job leaves, if it differs from the controller's. */
  readonly judged?: object;
}

const cases: Record<string, Case> = {
  'a VM that was never marked stays so': { vm: { type: '' }, vmi: { type: OLD }, want: {} },
  'a mark that is off stays so': { vm: { type: '', status: OFF }, vmi: { type: OLD }, want: OFF },
  'a mark stays with its instance': {
    vm: { type: '', status: bound('vmi-uid') },
    vmi: { type: OLD },
    want: bound('vmi-uid'),
  },
  'a mark goes without an instance': { vm: { type: '', status: bound('vmi-uid') }, want: OFF },
  'a mark goes with an instance that has ended': {
    vm: { type: '', status: bound('vmi-uid') },
    vmi: { type: OLD, status: { phase: 'Failed' } },
    want: OFF,
  },
  'a mark of an instance that is gone goes, whatever the next one runs on': {
    vm: { type: '', status: bound('earlier') },
    vmi: { type: OLD },
    want: OFF,
  },
  'an instance that is not its own is none': {
    vm: { type: '', status: bound('vmi-uid') },
    vmi: { type: OLD, metadata: { ownerReferences: [] } },
    want: OFF,
  },
  'a mark without an instance goes where none runs': { vm: { type: '', status: UNBOUND }, want: OFF },
  'a mark without an instance gets that of a VM whose type was cleared': {
    vm: { type: '', status: UNBOUND },
    vmi: { type: OLD },
    want: bound('vmi-uid'),
  },
  'a mark without an instance gets that of a VM whose type was set': {
    vm: { type: NEW, status: UNBOUND },
    vmi: { type: OLD },
    want: bound('vmi-uid'),
  },
  'a mark without an instance goes where the guest has the type of the spec': {
    vm: { type: NEW, status: UNBOUND },
    vmi: { type: NEW },
    want: OFF,
  },
  'a mark without an instance waits until it is known what the guest runs on': {
    vm: { type: NEW, status: UNBOUND },
    vmi: { type: NEW, status: { phase: 'Scheduling', machine: undefined } },
    want: UNBOUND,
  },
  'an alias that means another type today keeps its mark': {
    vm: { type: 'q35', status: UNBOUND },
    vmi: { type: 'q35', status: { phase: 'Running', machine: { type: OLD } } },
    want: bound('vmi-uid'),
  },
  'an alias that means what the guest runs on loses its mark by the Job, which knows': {
    vm: { type: 'q35', status: UNBOUND },
    vmi: { type: 'q35', status: { phase: 'Running', machine: { type: NEW } } },
    want: bound('vmi-uid'),
    judged: OFF,
  },
  'so does a VM without a type that runs on the default': {
    vm: { type: '', status: bound('vmi-uid') },
    vmi: { type: 'q35', status: { phase: 'Running', machine: { type: NEW } } },
    want: bound('vmi-uid'),
    judged: OFF,
  },
};

const MEANINGS = { defaultType: 'q35', canonical: (type: string) => (type === 'q35' ? NEW : type) };

for (const [name, { vm, vmi, want, judged = want }] of Object.entries(cases)) {
  test(name, () => {
    const [given, instance] = [aVm(vm), vmi && aVmi(vmi)];
    assert.deepEqual(restartMarkOf(given, instance), want);
    assert.deepEqual(judgeMark(given, instance, MEANINGS), judged);
    const settled = aVm({ ...vm, status: want });
    assert.deepEqual(restartMarkOf(settled, instance), want, 'it comes to rest');
  });
}

test('a mark is for one instance', () => {
  const [first, next] = [aVmi({ type: OLD }), aVmi({ type: NEW, metadata: { uid: 'next' } })];
  const vm = aVm({ type: '', status: markFor(first) });
  assert.deepEqual([isMarkedFor(vm, first), isMarkedFor(vm, next)], [true, false]);
});

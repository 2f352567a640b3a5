import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isMarkedForInstance,
  decideRestartMark,
  buildRestartMark,
  restartMarkOf,
} from '#api/machine-types/restart-mark.ts';
import { aVm, aVmi, type VmiOverrides, type VmOverrides } from '#api/machine-types/testing/sample-transition.ts';

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
  readonly decidedByJob?: object;
}

const cases: Record<string, Case> = {
  'a VM that was never marked stays unmarked': { vm: { type: '' }, vmi: { type: OLD }, want: {} },
  'a cleared mark stays cleared': { vm: { type: '', status: OFF }, vmi: { type: OLD }, want: OFF },
  'a mark is kept while its instance runs': {
    vm: { type: '', status: bound('vmi-uid') },
    vmi: { type: OLD },
    want: bound('vmi-uid'),
  },
  'a mark is cleared without an instance': { vm: { type: '', status: bound('vmi-uid') }, want: OFF },
  'a mark is cleared if its instance has ended': {
    vm: { type: '', status: bound('vmi-uid') },
    vmi: { type: OLD, status: { phase: 'Failed' } },
    want: OFF,
  },
  'a mark of an earlier instance is cleared, whatever type the next one has': {
    vm: { type: '', status: bound('earlier') },
    vmi: { type: OLD },
    want: OFF,
  },
  'an instance of another owner does not count': {
    vm: { type: '', status: bound('vmi-uid') },
    vmi: { type: OLD, metadata: { ownerReferences: [] } },
    want: OFF,
  },
  'a mark without a uid is cleared if no instance runs': { vm: { type: '', status: UNBOUND }, want: OFF },
  'a mark without a uid gets the instance of a VM whose type was cleared': {
    vm: { type: '', status: UNBOUND },
    vmi: { type: OLD },
    want: bound('vmi-uid'),
  },
  'a mark without a uid gets the instance of a VM whose type was set': {
    vm: { type: NEW, status: UNBOUND },
    vmi: { type: OLD },
    want: bound('vmi-uid'),
  },
  'a mark without a uid is cleared if the guest has the type of the spec': {
    vm: { type: NEW, status: UNBOUND },
    vmi: { type: NEW },
    want: OFF,
  },
  'a mark without a uid is kept until the type of the guest is known': {
    vm: { type: NEW, status: UNBOUND },
    vmi: { type: NEW, status: { phase: 'Scheduling', machine: undefined } },
    want: UNBOUND,
  },
  'an alias that resolves to another type keeps its mark': {
    vm: { type: 'q35', status: UNBOUND },
    vmi: { type: 'q35', status: { phase: 'Running', machine: { type: OLD } } },
    want: bound('vmi-uid'),
  },
  'the Job clears the mark if the alias resolves to the type of the guest': {
    vm: { type: 'q35', status: UNBOUND },
    vmi: { type: 'q35', status: { phase: 'Running', machine: { type: NEW } } },
    want: bound('vmi-uid'),
    decidedByJob: OFF,
  },
  'the Job clears the mark of a VM without a type that runs with the default': {
    vm: { type: '', status: bound('vmi-uid') },
    vmi: { type: 'q35', status: { phase: 'Running', machine: { type: NEW } } },
    want: bound('vmi-uid'),
    decidedByJob: OFF,
  },
};

const MEANINGS = { defaultType: 'q35', canonical: (type: string) => (type === 'q35' ? NEW : type) };

for (const [name, { vm, vmi, want, decidedByJob = want }] of Object.entries(cases)) {
  test(name, () => {
    const [given, instance] = [aVm(vm), vmi && aVmi(vmi)];
    assert.deepEqual(restartMarkOf(given, instance), want);
    assert.deepEqual(decideRestartMark(given, instance, MEANINGS), decidedByJob);
    const settled = aVm({ ...vm, status: want });
    assert.deepEqual(restartMarkOf(settled, instance), want, 'a second call changes nothing');
  });
}

test('a mark is for one instance', () => {
  const [first, next] = [aVmi({ type: OLD }), aVmi({ type: NEW, metadata: { uid: 'next' } })];
  const vm = aVm({ type: '', status: buildRestartMark(first) });
  assert.deepEqual([isMarkedForInstance(vm, first), isMarkedForInstance(vm, next)], [true, false]);
});

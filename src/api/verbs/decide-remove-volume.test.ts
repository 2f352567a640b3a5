/** removevolume: whom it is refused to, in KubeVirt’s words, and what is written; and both while the instance migrates. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { can, type CanWorld } from '#api/can.ts';
import {
  adds,
  specOf,
  storedVm,
  storedVmi,
  ephemeral,
  hot,
  type Case,
  VM,
  VMI,
  REMOVE,
  SNAPSHOT,
  BY_SNAPSHOT,
  testVolumeVerbs,
} from '#api/verbs/testing/volume-verb-cases.ts';

const cases: Record<string, Case> = {
  'a VM loses one': {
    ...REMOVE,
    ...VM,
    options: { removed: 'data' },
    vm: [hot('data')],
    want: '202 root,seed root,seed',
  },
  'a VM loses one by the name of its claim': {
    ...REMOVE,
    ...VM,
    options: { removed: 'pvc' },
    vm: [hot('data', 'pvc'), hot('more')],
    want: '202 root,seed,more root,seed,more',
  },
  'the name of a volume goes before that of a claim': {
    ...REMOVE,
    ...VM,
    options: { removed: 'b' },
    vm: [hot('a', 'b'), hot('b', 'a')],
    want: '202 root,seed,a root,seed,a',
  },
  'a VM keeps what is not hotpluggable': {
    ...REMOVE,
    ...VM,
    options: { removed: 'root' },
    want: '409 Unable to remove volume [root] because it is not hotpluggable',
  },
  'a VM cannot lose what it has not': {
    ...REMOVE,
    ...VM,
    options: { removed: 'data' },
    vmi: [hot('data')],
    want: '409 Unable to remove volume [data] because it does not exist',
  },
  'a VM of which a snapshot is taken loses none': {
    ...REMOVE,
    ...VM,
    options: { removed: 'data' },
    vm: [hot('data')],
    status: SNAPSHOT,
    want: BY_SNAPSHOT,
  },

  'an instance loses one': {
    ...REMOVE,
    ...VMI,
    options: { removed: 'data' },
    vmi: [hot('data')],
    annotations: ephemeral('data'),
    want: '202 root,seed root,seed',
  },
  'an instance loses one of several': {
    ...REMOVE,
    ...VMI,
    options: { removed: 'pvc' },
    vmi: [hot('data', 'pvc'), hot('more')],
    annotations: ephemeral('data', 'more'),
    want: '202 root,seed,more root,seed,more ["more"]',
  },
  'an instance loses one that nobody noted': {
    ...REMOVE,
    ...VMI,
    options: { removed: 'data' },
    vmi: [hot('data')],
    want: '202 root,seed root,seed',
  },
  'an instance keeps what its VM would plug in again': {
    ...REMOVE,
    ...VMI,
    options: { removed: 'data' },
    vm: [hot('data')],
    vmi: [hot('data')],
    want: '409 Unable to remove volume [data] because the VirtualMachine has it; remove it from the VirtualMachine',
  },
  'an instance that is not that VM’s loses what the VM has, too': {
    ...REMOVE,
    ...VMI,
    options: { removed: 'data' },
    vm: [hot('data')],
    vmi: [hot('data')],
    owned: false,
    want: '202 root,seed root,seed',
  },
  'an instance cannot lose what it has not': {
    ...REMOVE,
    ...VMI,
    options: { removed: 'data' },
    want: '409 Unable to remove volume [data] because it does not exist',
  },
  'an instance keeps what is not hotpluggable': {
    ...REMOVE,
    ...VMI,
    options: { removed: 'root' },
    want: '409 Unable to remove volume [root] because it is not hotpluggable',
  },
};

testVolumeVerbs(cases);

for (const [on, owned, want] of [
  ['virtualmachineinstance', true, '409 VM has an active migration'],
  ['virtualmachineinstance', false, '409 VM has an active migration'],
  ['virtualmachine', true, '409 VM has an active migration'],
  // It is none of the VM's.
  ['virtualmachine', false, 'allowed'],
] as const) {
  test(`${on}: while the ${owned ? '' : 'foreign '}instance migrates`, () => {
    const volumes = [hot('data')];
    const vmi = storedVmi({ spec: specOf({}, volumes), phase: 'Running', owned });
    const world: CanWorld = {
      name: 'db',
      vm: storedVm(specOf({}, volumes)),
      vmi: { ...vmi, status: { ...vmi.status, migrationState: { migrationUid: 'm' } } },
    };
    for (const [verb, options] of [
      ['addvolume', adds('more')],
      ['removevolume', { removed: 'data' }],
    ] as const) {
      const answer = can(verb, { ...world, options }, on);
      assert.equal('denied' in answer ? `${answer.denied.code} ${answer.denied.message}` : 'allowed', want, verb);
    }
  });
}

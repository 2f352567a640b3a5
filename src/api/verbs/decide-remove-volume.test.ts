/**
 * Tests removevolume: its refusals, with KubeVirt’s messages, and its patches; and both volume verbs during a
 * migration.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideVerb } from '#api/verbs/decide-verb.ts';
import {
  addOptions,
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
import type { VerbWorld } from '#api/verbs/verb.ts';

const cases: Record<string, Case> = {
  'a volume of a VM is removed': {
    ...REMOVE,
    ...VM,
    options: { removed: 'data' },
    vm: [hot('data')],
    want: '202 root,seed root,seed',
  },
  'a volume of a VM is removed by the name of its claim': {
    ...REMOVE,
    ...VM,
    options: { removed: 'pvc' },
    vm: [hot('data', 'pvc'), hot('more')],
    want: '202 root,seed,more root,seed,more',
  },
  'the name of a volume takes precedence over that of a claim': {
    ...REMOVE,
    ...VM,
    options: { removed: 'b' },
    vm: [hot('a', 'b'), hot('b', 'a')],
    want: '202 root,seed,a root,seed,a',
  },
  'refused for a volume of a VM that is not hotpluggable': {
    ...REMOVE,
    ...VM,
    options: { removed: 'root' },
    want: '409 Unable to remove volume [root] because it is not hotpluggable',
  },
  'refused for a volume that the VM does not have': {
    ...REMOVE,
    ...VM,
    options: { removed: 'data' },
    vmi: [hot('data')],
    want: '409 Unable to remove volume [data] because it does not exist; no volume can be unplugged',
  },
  'a refusal names the volumes that can be unplugged': {
    ...REMOVE,
    ...VM,
    options: { removed: 'dat' },
    vm: [hot('data'), hot('more')],
    want: '409 Unable to remove volume [dat] because it does not exist; these can be unplugged: data, more',
  },
  'refused during a snapshot of the VM': {
    ...REMOVE,
    ...VM,
    options: { removed: 'data' },
    vm: [hot('data')],
    status: SNAPSHOT,
    want: BY_SNAPSHOT,
  },

  'a volume of an instance is removed': {
    ...REMOVE,
    ...VMI,
    options: { removed: 'data' },
    vmi: [hot('data')],
    annotations: ephemeral('data'),
    want: '202 root,seed root,seed',
  },
  'one of several volumes of an instance is removed': {
    ...REMOVE,
    ...VMI,
    options: { removed: 'pvc' },
    vmi: [hot('data', 'pvc'), hot('more')],
    annotations: ephemeral('data', 'more'),
    want: '202 root,seed,more root,seed,more ["more"]',
  },
  'a volume of an instance that is not in the annotation is removed': {
    ...REMOVE,
    ...VMI,
    options: { removed: 'data' },
    vmi: [hot('data')],
    want: '202 root,seed root,seed',
  },
  'refused for an instance if its VM has the volume': {
    ...REMOVE,
    ...VMI,
    options: { removed: 'data' },
    vm: [hot('data')],
    vmi: [hot('data')],
    want: '409 Unable to remove volume [data] because the VirtualMachine has it; remove it from the VirtualMachine',
  },
  'a volume of an instance of another owner is removed, even if the VM has it': {
    ...REMOVE,
    ...VMI,
    options: { removed: 'data' },
    vm: [hot('data')],
    vmi: [hot('data')],
    owned: false,
    want: '202 root,seed root,seed',
  },
  'refused for a volume that the instance does not have': {
    ...REMOVE,
    ...VMI,
    options: { removed: 'data' },
    want: '409 Unable to remove volume [data] because it does not exist; no volume can be unplugged',
  },
  'refused for a volume of an instance that is not hotpluggable': {
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
  // The instance does not belong to the VM.
  ['virtualmachine', false, 'allowed'],
] as const) {
  test(`${on}: while the ${owned ? '' : 'foreign '}instance migrates`, () => {
    const volumes = [hot('data')];
    const vmi = storedVmi({ spec: specOf({}, volumes), phase: 'Running', owned });
    const world: VerbWorld = {
      name: 'db',
      vm: storedVm(specOf({}, volumes)),
      vmi: { ...vmi, status: { ...vmi.status, migrationState: { migrationUid: 'm' } } },
    };
    for (const [verb, options] of [
      ['addvolume', addOptions('more')],
      ['removevolume', { removed: 'data' }],
    ] as const) {
      const answer = decideVerb(verb, { ...world, options }, on);
      assert.equal('denied' in answer ? `${answer.denied.code} ${answer.denied.message}` : 'allowed', want, verb);
    }
  });
}

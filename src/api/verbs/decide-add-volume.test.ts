/** Tests addvolume: its refusals, with KubeVirt’s messages, and its patches. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideVerb } from '#api/verbs/decide-verb.ts';
import { EPHEMERAL_HOTPLUG_ANNOTATION } from '#api/names.ts';
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
  ADD,
  SNAPSHOT,
  RESTORE,
  BY_SNAPSHOT,
  BY_RESTORE,
  worldOf,
  testVolumeVerbs,
} from '#api/verbs/testing/volume-verb-cases.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { applyJsonPatch, JsonPatchError } from '#kube/patches/json-patch.ts';
import { refusalToApiError } from '#api/verbs/verb.ts';

const cases: Record<string, Case> = {
  'a VM gets a volume': { ...ADD, ...VM, options: addOptions('data'), want: '202 root,seed,data root,seed,data' },
  'a VM without disks gets a volume': {
    ...ADD,
    ...VM,
    options: addOptions('data'),
    spec: { volumes: null, domain: { devices: { disks: null } } },
    want: '202 data data',
  },
  'a VM without devices gets a volume': {
    ...ADD,
    ...VM,
    options: addOptions('data'),
    spec: { volumes: null, domain: { devices: null } },
    want: '202 data data',
  },
  'a stopped VM gets a volume': {
    ...ADD,
    ...VM,
    options: addOptions('data'),
    vmi: 'none',
    want: '202 root,seed,data root,seed,data',
  },
  'refused if the VM has a volume with that name': {
    ...ADD,
    ...VM,
    options: addOptions('root', 'other'),
    want: '409 Unable to add volume [root] because volume with that name already exists',
  },
  'refused if the VM has the claim': {
    ...ADD,
    ...VM,
    options: addOptions('data', 'root'),
    want: '409 Unable to add volume source [root] because it already exists',
  },
  'not found for a missing VM': { ...ADD, ...VM, options: addOptions('data'), vm: 'none', want: '404 not found' },
  'refused during a snapshot of the VM': {
    ...ADD,
    ...VM,
    options: addOptions('data'),
    status: SNAPSHOT,
    want: BY_SNAPSHOT,
  },
  'refused during a restore of the VM': {
    ...ADD,
    ...VM,
    options: addOptions('data'),
    status: RESTORE,
    want: BY_RESTORE,
  },

  'an instance gets a volume': {
    ...ADD,
    ...VMI,
    options: addOptions('data'),
    want: '202 root,seed,data root,seed,data ["data"]',
  },
  'an instance gets a second volume': {
    ...ADD,
    ...VMI,
    options: addOptions('more'),
    vmi: [hot('data')],
    annotations: ephemeral('data'),
    want: '202 root,seed,data,more root,seed,data,more ["data","more"]',
  },
  'an instance with other annotations gets a volume': {
    ...ADD,
    ...VMI,
    options: addOptions('data'),
    annotations: { a: 'b' },
    want: '202 root,seed,data root,seed,data ["data"]',
  },
  'an unreadable annotation is rewritten with the volumes that the VM does not have': {
    ...ADD,
    ...VMI,
    options: addOptions('data'),
    vm: [hot('its')],
    vmi: [hot('its'), hot('more')],
    annotations: { [EPHEMERAL_HOTPLUG_ANNOTATION]: 'more,' },
    want: '202 root,seed,its,more,data root,seed,its,more,data ["more","data"]',
  },
  'refused for an instance if its VM has a volume with that name': {
    ...ADD,
    ...VMI,
    options: addOptions('data', 'other'),
    vm: [hot('data')],
    want: '409 Unable to add volume [data] because the VirtualMachine has a volume with that name',
  },
  'an instance without a VM gets a volume': {
    ...ADD,
    ...VMI,
    options: addOptions('data'),
    vm: 'none',
    owned: false,
    want: '202 root,seed,data root,seed,data ["data"]',
  },
  'refused for an instance that does not run yet': {
    ...ADD,
    ...VMI,
    options: addOptions('data'),
    phase: 'Scheduled',
    want: '409 VMI is not running',
  },
  'not found for a missing instance': {
    ...ADD,
    ...VMI,
    options: addOptions('data'),
    vmi: 'none',
    want: '404 not found',
  },
  'refused if the instance has a volume with that name': {
    ...ADD,
    ...VMI,
    options: addOptions('data'),
    vmi: [hot('data')],
    want: '409 Unable to add volume [data] because volume with that name already exists',
  },
  'refused for an instance during a snapshot of its VM': {
    ...ADD,
    ...VMI,
    options: addOptions('data'),
    status: SNAPSHOT,
    want: BY_SNAPSHOT,
  },
  'a snapshot of a VM that only shares the name does not count': {
    ...ADD,
    ...VMI,
    options: addOptions('data'),
    status: SNAPSHOT,
    owned: false,
    want: '202 root,seed,data root,seed,data ["data"]',
  },
};

testVolumeVerbs(cases);

test('the spec has volume and disk as given', () => {
  const answer = decideVerb(
    'addvolume',
    worldOf({ ...ADD, ...VM, options: addOptions('data', 'pvc'), want: '' }),
    'virtualmachine',
  );
  assert.ok('allowed' in answer && answer.allowed[0]?.do === 'patchVm');
  const { spec } = applyJsonPatch(storedVm(specOf({}, [])), answer.allowed[0].patch) as VirtualMachine;
  assert.deepEqual(spec.template.spec?.volumes?.at(-1), hot('data', 'pvc'));
  assert.deepEqual(spec.template.spec?.domain?.devices?.disks?.at(-1), { name: 'data', disk: { bus: 'scsi' } });
});

for (const [what, now] of Object.entries({
  'other volumes': { spec: specOf({}, [hot('more')]), annotations: undefined },
  'another annotation': { spec: specOf({}, []), annotations: ephemeral('more') },
})) {
  test(`the patch fails if the instance has ${what} by now`, () => {
    const answer = decideVerb(
      'addvolume',
      worldOf({ ...ADD, ...VMI, options: addOptions('data'), want: '' }),
      'virtualmachineinstance',
    );
    assert.ok('allowed' in answer && answer.allowed[0]?.do === 'patchVmi');
    const { patch } = answer.allowed[0];
    const vmi = storedVmi({ ...now, phase: 'Running', owned: true });
    assert.throws(() => applyJsonPatch(vmi, patch), JsonPatchError);
  });
}

test('refusals name the kind of the verb', () => {
  const world = worldOf({ ...ADD, ...VMI, options: addOptions('root'), want: '' });
  const texts = (['virtualmachine', 'virtualmachineinstance'] as const).map((on) => {
    const answer = decideVerb('addvolume', world, on);
    return 'denied' in answer ? refusalToApiError(answer.denied).message : 'allowed';
  });
  const cause = 'Unable to add volume [root] because volume with that name already exists';
  assert.deepEqual(texts, [
    `Operation cannot be fulfilled on virtualmachine.kubevirt.io "db": ${cause}`,
    `Operation cannot be fulfilled on virtualmachineinstance.kubevirt.io "db": ${cause}`,
  ]);
});

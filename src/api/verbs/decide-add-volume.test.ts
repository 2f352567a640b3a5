/** addvolume: whom it is refused to, in KubeVirt’s words, and what is written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { can, denialError } from '#api/can.ts';
import { EPHEMERAL_HOTPLUG_ANNOTATION } from '#api/names.ts';
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
  ADD,
  SNAPSHOT,
  RESTORE,
  BY_SNAPSHOT,
  BY_RESTORE,
  worldOf,
  testVolumeVerbs,
} from '#api/verbs/testing/volume-verb-cases.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { applyJsonPatch, JsonPatchError } from '#kube/json-patch.ts';

const cases: Record<string, Case> = {
  'a VM gets one': { ...ADD, ...VM, options: adds('data'), want: '202 root,seed,data root,seed,data' },
  'a VM that has no disks yet gets one': {
    ...ADD,
    ...VM,
    options: adds('data'),
    spec: { volumes: null, domain: { devices: { disks: null } } },
    want: '202 data data',
  },
  'a VM that has no devices at all gets one': {
    ...ADD,
    ...VM,
    options: adds('data'),
    spec: { volumes: null, domain: { devices: null } },
    want: '202 data data',
  },
  'a VM that does not run gets one': {
    ...ADD,
    ...VM,
    options: adds('data'),
    vmi: 'none',
    want: '202 root,seed,data root,seed,data',
  },
  'a VM has one of that name': {
    ...ADD,
    ...VM,
    options: adds('root', 'other'),
    want: '409 Unable to add volume [root] because volume with that name already exists',
  },
  'a VM has that claim': {
    ...ADD,
    ...VM,
    options: adds('data', 'root'),
    want: '409 Unable to add volume source [root] because it already exists',
  },
  'a VM that is not there': { ...ADD, ...VM, options: adds('data'), vm: 'none', want: '404 not found' },
  'a VM of which a snapshot is taken gets none': {
    ...ADD,
    ...VM,
    options: adds('data'),
    status: SNAPSHOT,
    want: BY_SNAPSHOT,
  },
  'a VM that is being restored gets none': { ...ADD, ...VM, options: adds('data'), status: RESTORE, want: BY_RESTORE },

  'an instance gets one': {
    ...ADD,
    ...VMI,
    options: adds('data'),
    want: '202 root,seed,data root,seed,data ["data"]',
  },
  'an instance gets another one': {
    ...ADD,
    ...VMI,
    options: adds('more'),
    vmi: [hot('data')],
    annotations: ephemeral('data'),
    want: '202 root,seed,data,more root,seed,data,more ["data","more"]',
  },
  'an instance with other annotations gets one': {
    ...ADD,
    ...VMI,
    options: adds('data'),
    annotations: { a: 'b' },
    want: '202 root,seed,data root,seed,data ["data"]',
  },
  'an annotation that cannot be read is written anew, with what the VM does not have': {
    ...ADD,
    ...VMI,
    options: adds('data'),
    vm: [hot('its')],
    vmi: [hot('its'), hot('more')],
    annotations: { [EPHEMERAL_HOTPLUG_ANNOTATION]: 'more,' },
    want: '202 root,seed,its,more,data root,seed,its,more,data ["more","data"]',
  },
  'an instance gets no volume of a name that means another one to its VM': {
    ...ADD,
    ...VMI,
    options: adds('data', 'other'),
    vm: [hot('data')],
    want: '409 Unable to add volume [data] because the VirtualMachine has a volume with that name',
  },
  'an instance without a VM gets one': {
    ...ADD,
    ...VMI,
    options: adds('data'),
    vm: 'none',
    owned: false,
    want: '202 root,seed,data root,seed,data ["data"]',
  },
  'an instance that does not run yet': {
    ...ADD,
    ...VMI,
    options: adds('data'),
    phase: 'Scheduled',
    want: '409 VMI is not running',
  },
  'an instance that is not there': { ...ADD, ...VMI, options: adds('data'), vmi: 'none', want: '404 not found' },
  'an instance has one of that name': {
    ...ADD,
    ...VMI,
    options: adds('data'),
    vmi: [hot('data')],
    want: '409 Unable to add volume [data] because volume with that name already exists',
  },
  'an instance of whose VM a snapshot is taken gets none': {
    ...ADD,
    ...VMI,
    options: adds('data'),
    status: SNAPSHOT,
    want: BY_SNAPSHOT,
  },
  'a VM that only has the name of an instance holds nothing': {
    ...ADD,
    ...VMI,
    options: adds('data'),
    status: SNAPSHOT,
    owned: false,
    want: '202 root,seed,data root,seed,data ["data"]',
  },
};

testVolumeVerbs(cases);

test('what is added stands in the spec as it was given', () => {
  const answer = can('addvolume', worldOf({ ...ADD, ...VM, options: adds('data', 'pvc'), want: '' }), 'virtualmachine');
  assert.ok('allowed' in answer && answer.allowed[0]?.do === 'patchVm');
  const { spec } = applyJsonPatch(storedVm(specOf({}, [])), answer.allowed[0].patch) as VirtualMachine;
  assert.deepEqual(spec.template.spec?.volumes?.at(-1), hot('data', 'pvc'));
  assert.deepEqual(spec.template.spec?.domain?.devices?.disks?.at(-1), { name: 'data', disk: { bus: 'scsi' } });
});

for (const [what, now] of Object.entries({
  'other volumes': { spec: specOf({}, [hot('more')]), annotations: undefined },
  'another note': { spec: specOf({}, []), annotations: ephemeral('more') },
})) {
  test(`written only over what was seen, and not over ${what}`, () => {
    const answer = can(
      'addvolume',
      worldOf({ ...ADD, ...VMI, options: adds('data'), want: '' }),
      'virtualmachineinstance',
    );
    assert.ok('allowed' in answer && answer.allowed[0]?.do === 'patchVmi');
    const { patch } = answer.allowed[0];
    const vmi = storedVmi({ ...now, phase: 'Running', owned: true });
    assert.throws(() => applyJsonPatch(vmi, patch), JsonPatchError);
  });
}

test('refusals name whose verb it was', () => {
  const world = worldOf({ ...ADD, ...VMI, options: adds('root'), want: '' });
  const texts = (['virtualmachine', 'virtualmachineinstance'] as const).map((on) => {
    const answer = can('addvolume', world, on);
    return 'denied' in answer ? denialError(answer.denied).message : 'allowed';
  });
  const why = 'Unable to add volume [root] because volume with that name already exists';
  assert.deepEqual(texts, [
    `Operation cannot be fulfilled on virtualmachine.kubevirt.io "db": ${why}`,
    `Operation cannot be fulfilled on virtualmachineinstance.kubevirt.io "db": ${why}`,
  ]);
});

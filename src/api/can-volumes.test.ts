/** addvolume and removevolume: whom they are refused to, in KubeVirt's words, and what is written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  can,
  denialError,
  type AddedVolume,
  type CanWorld,
  type Target,
  type Verb,
  type VerbOptions,
} from '#api/can.ts';
import type { Volume } from '#api/domain/volume.ts';
import { EPHEMERAL_HOTPLUG_ANNOTATION } from '#api/names.ts';
import { aVm, aVmi } from '#api/validation/testing/valid-objects.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { VmiPhase } from '#api/virtual-machine-instance/status.ts';
import { applyJsonPatch, JsonPatchError } from '#kube/json-patch.ts';
import type { Stored } from '#kube/meta.ts';

const claim = (claimName: string) => ({ claimName, hotpluggable: true });
const adds = (name: string, claimName = name): VerbOptions => {
  const added: AddedVolume = {
    volume: { name, persistentVolumeClaim: claim(claimName) },
    disk: { name, disk: { bus: 'scsi' } },
  };
  return { added };
};

const metadata = { name: 'db', namespace: 'golden', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
const OWNER = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid: 'vm-uid', controller: true };

/** A spec with these volumes beside `root` and `seed`. */
function specOf(patch: unknown, extra: readonly Volume[]): VmiSpec {
  const { spec } = aVmi({ spec: patch });
  const { disks = [] } = spec.domain.devices ?? {};
  if (extra.length === 0) return spec;
  const more = extra.map(({ name }) => ({ name, disk: { bus: 'scsi' as const } }));
  const devices = { ...spec.domain.devices, disks: [...disks, ...more] };
  return { ...spec, volumes: [...(spec.volumes ?? []), ...extra], domain: { ...spec.domain, devices } };
}

function storedVm(spec: VmiSpec, status?: VmStatus): Stored<VirtualMachine> {
  return {
    ...aVm({ spec: { template: { spec: null } } }),
    metadata: { ...metadata, uid: 'vm-uid' },
    spec: { runStrategy: 'Always', template: { spec } },
    ...(status === undefined ? {} : { status }),
  };
}

interface Instance {
  readonly spec: VmiSpec;
  readonly phase: VmiPhase;
  readonly annotations?: Record<string, string> | undefined;
  readonly owned: boolean;
}

function storedVmi({ spec, phase, annotations, owned }: Instance): Stored<VirtualMachineInstance> {
  return {
    ...aVmi(),
    metadata: {
      ...metadata,
      uid: 'vmi-uid',
      ...(owned ? { ownerReferences: [OWNER] } : {}),
      ...(annotations === undefined ? {} : { annotations }),
    },
    spec,
    status: { phase, nodeName: 'node-1' },
  };
}

const ephemeral = (...names: string[]) => ({ [EPHEMERAL_HOTPLUG_ANNOTATION]: JSON.stringify(names) });
const hot = (name: string, claimName = name): Volume => ({ name, persistentVolumeClaim: claim(claimName) });

interface Case {
  readonly verb: 'addvolume' | 'removevolume';
  readonly on: Target;
  readonly options: VerbOptions;
  /** What the VM, or the instance, has beside `root` and `seed`. */
  readonly vm?: readonly Volume[] | 'none';
  readonly vmi?: readonly Volume[] | 'none';
  /** A merge patch of the spec of the instance, or of the template. */
  readonly spec?: object;
  readonly status?: VmStatus;
  readonly phase?: VmiPhase;
  readonly annotations?: Record<string, string>;
  readonly owned?: boolean;
  /** `code message`, or the volumes and disks afterwards, and the annotation. */
  readonly want: string;
}

const VM = { on: 'virtualmachine' } as const;
const VMI = { on: 'virtualmachineinstance' } as const;
const ADD = { verb: 'addvolume' } as const;
const REMOVE = { verb: 'removevolume' } as const;
const SNAPSHOT = { snapshotInProgress: 's1' };
const RESTORE = { restoreInProgress: 'r1' };
const BY_SNAPSHOT = '409 Cannot update vm disks or volumes until snapshot "s1" completes';
const BY_RESTORE = '409 Cannot update VM template until restore "r1" completes';

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
    want: '409 Unable to remove volume [data] because the VirtualMachine has it; remove it from there',
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

function worldOf({
  options,
  vm = [],
  vmi = [],
  spec = {},
  status,
  phase = 'Running',
  annotations,
  owned = true,
}: Case): CanWorld {
  return {
    name: 'db',
    options,
    ...(vm === 'none' ? {} : { vm: storedVm(specOf(spec, vm), status) }),
    ...(vmi === 'none' ? {} : { vmi: storedVmi({ spec: specOf(spec, vmi), phase, annotations, owned }) }),
  };
}

const namesOf = (list: readonly { readonly name: string }[] | undefined) => (list ?? []).map(({ name }) => name).join();
const listed = ({ volumes, domain }: VmiSpec) => `${namesOf(volumes)} ${namesOf(domain.devices?.disks)}`;

function outcome(verb: Verb, world: CanWorld, on: Target): string {
  const answer = can(verb, world, on);
  if ('denied' in answer) {
    assert.equal(answer.denied.on, on);
    return `${answer.denied.code} ${answer.denied.message}`;
  }
  const [step, ...others] = answer.allowed;
  assert.equal(others.length, 0);
  if (step?.do === 'patchVm') {
    const { spec } = applyJsonPatch(world.vm, step.patch) as VirtualMachine;
    return `${answer.code} ${listed(spec.template.spec ?? assert.fail())}`;
  }
  assert.ok(step?.do === 'patchVmi');
  const vmi = applyJsonPatch(world.vmi, step.patch) as VirtualMachineInstance;
  const noted = vmi.metadata.annotations?.[EPHEMERAL_HOTPLUG_ANNOTATION];
  return `${answer.code} ${listed(vmi.spec)}${noted === undefined ? '' : ` ${noted}`}`;
}

for (const [name, one] of Object.entries(cases)) {
  test(`${one.verb}: ${name}`, () => assert.equal(outcome(one.verb, worldOf(one), one.on), one.want));
}

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

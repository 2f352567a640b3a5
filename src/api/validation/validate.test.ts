/** Whole objects: what is asked of them beside their spec, and what an update may leave wrong. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import type { KubeVirt } from '#api/kubevirt/kind.ts';
import { aVm, aVmi, CONFIGURATION } from '#api/validation/testing/valid-objects.ts';
import { validateVirtualMachineInstance } from '#api/validation/validate-virtual-machine-instance.ts';
import { validateVirtualMachine, virtualMachineWarnings } from '#api/validation/validate-virtual-machine.ts';
import type { FieldError } from '#kube/field-error.ts';

const texts = (errors: FieldError[]) => errors.map(({ field, message }) => `${field}: ${message}`);
const machine = (type: string | null) => ({ spec: { template: { spec: { domain: { machine: { type } } } } } });
const imported = (value: unknown) => ({
  metadata: { annotations: { 'identity.selfsame.io/imported-devices': JSON.stringify(value) } },
});
const IMPORT = { from: 'OVF of oVirt 4.1', devices: [{ id: 'nic-lan', type: 'interface', device: 'virtio' }] };
const IMPORTED = 'metadata.annotations[identity.selfsame.io/imported-devices]';
const LONG = 'x'.repeat(64);
const RESERVED = 'of the following reserved kubevirt.io/ labels on a VMI object is prohibited: kubevirt.io/nodeName';

const vms: Record<string, { vm: unknown; old?: unknown; want?: string[] }> = {
  'a valid VM': { vm: {} },
  'spec.running is enough': { vm: { spec: { running: true, runStrategy: null } } },
  'both ways to say whether it runs': {
    vm: { spec: { running: true } },
    want: [
      'spec.running: Forbidden: Running and RunStrategy are mutually exclusive. Note that Running is deprecated, please use RunStrategy instead',
    ],
  },
  'no way to say whether it runs': {
    vm: { spec: { runStrategy: null } },
    want: ['spec.runStrategy: Required value: RunStrategy must be specified'],
  },
  'a strategy that nobody knows': {
    vm: { spec: { runStrategy: 'Sometimes' } },
    want: ['spec.runStrategy: Invalid value: "Sometimes": Invalid RunStrategy (Sometimes)'],
  },
  'a name that is no label': {
    vm: { metadata: { name: LONG } },
    want: [`metadata.name: Invalid value: "${LONG}": must be no more than 63 characters`],
  },
  'a template with the name of its VM': {
    vm: { spec: { template: { metadata: { name: 'db', namespace: 'golden' } } } },
  },
  'a template with another name': {
    vm: { spec: { template: { metadata: { name: 'web', namespace: 'other' } } } },
    want: [
      'spec.template.metadata.name: Forbidden: the instance has the name of its VM',
      'spec.template.metadata.namespace: Forbidden: the instance has the namespace of its VM',
    ],
  },
  'an empty strategy says nothing': { vm: { spec: { running: true, runStrategy: '' } } },
  'a template without a domain': {
    vm: { spec: { template: { spec: null } } },
    want: ['spec.template.spec.domain: Required value'],
  },
  'a template with a label of ours': {
    vm: { spec: { template: { metadata: { labels: { 'kubevirt.io/nodeName': 'n1' } } } } },
    want: [`spec.template.metadata.labels: Forbidden: creation ${RESERVED}`],
  },
  'an import brings its devices': { vm: imported(IMPORT) },
  'an import brings two devices of one id': {
    vm: imported({ ...IMPORT, devices: [...IMPORT.devices, ...IMPORT.devices] }),
    want: [`${IMPORTED}: Invalid value: two devices have the id nic-lan`],
  },
  'what was imported stays': { vm: imported(IMPORT), old: imported(IMPORT) },
  'what was imported is taken away': { vm: {}, old: imported(IMPORT) },
  'what was imported becomes something else': {
    vm: imported({ ...IMPORT, devices: [] }),
    old: imported(IMPORT),
    want: [`${IMPORTED}: Forbidden: may only be set when the VirtualMachine is created`],
  },
  'devices are imported later': {
    vm: imported(IMPORT),
    old: {},
    want: [`${IMPORTED}: Forbidden: may only be set when the VirtualMachine is created`],
  },
  'what was wrong before may stay': { vm: { ...machine('pc'), metadata: { labels: { a: 'b' } } }, old: machine('pc') },
  'what was wrong before does not hinder another change': {
    vm: { spec: { ...machine('pc').spec, runStrategy: 'Halted' } },
    old: machine('pc'),
  },
  'a machine type that is not allowed any more may be cleared': { vm: machine(''), old: machine('pc') },
  'so does leaving it out': { vm: machine(null), old: machine('pc') },
  'it may become one that is allowed': { vm: machine('pc-q35-7.2'), old: machine('pc') },
  'and not another that is not': {
    vm: machine('pc-i440fx-7.2'),
    old: machine('pc'),
    want: [
      'spec.template.spec.domain.machine.type: Invalid value: "pc-i440fx-7.2": spec.template.spec.domain.machine.type is not supported: pc-i440fx-7.2 (allowed values: [q35* pc-q35*])',
    ],
  },
  'what was wrong before excuses nothing else': {
    vm: { spec: { ...machine('pc').spec, runStrategy: 'Never' } },
    old: machine('pc'),
    want: ['spec.runStrategy: Invalid value: "Never": Invalid RunStrategy (Never)'],
  },
};

for (const [name, { vm, old, want = [] }] of Object.entries(vms)) {
  test(name, () => {
    const context = { configuration: CONFIGURATION, old: old === undefined ? undefined : aVm(old) };
    assert.deepEqual(texts(validateVirtualMachine(aVm(vm), context)), want);
  });
}

test('a machine type of null is none', () => {
  const vm = aVm();
  Object.assign(vm.spec.template.spec!.domain, { machine: { type: null } });
  assert.deepEqual(validateVirtualMachine(vm, { configuration: CONFIGURATION }), []);
  assert.deepEqual(validateVirtualMachine(vm, { configuration: CONFIGURATION, old: aVm(machine('pc')) }), []);
});

test('a restore brings back what was imported, though people cannot', () => {
  const context = { configuration: CONFIGURATION, old: aVm() };
  const errors = (writer?: 'restore-controller') =>
    validateVirtualMachine(aVm(imported(IMPORT)), { ...context, writer });
  assert.equal(errors().length, 1);
  assert.deepEqual(errors('restore-controller'), []);
});

test('spec.running is warned of', () => {
  assert.deepEqual(virtualMachineWarnings(aVm(), { configuration: CONFIGURATION }), []);
  assert.deepEqual(virtualMachineWarnings(aVm({ spec: { running: false } }), { configuration: CONFIGURATION }), [
    'spec.running is deprecated, please use spec.runStrategy instead.',
  ]);
});

const MOVES = (before: string, now: string) => [
  `spec.template.spec.domain.machine.type: the chipset changes from ${before} to ${now}: all devices get new addresses at the next start; virtctl identity diff db shows them`,
];
const chipsets: Record<string, { from: string; to: string; machineType?: string; want?: string[] }> = {
  'to another version': { from: 'pc-q35-6.2', to: 'pc-q35-7.2' },
  'from an alias to what it stands for': { from: 'q35', to: 'pc-q35-7.2' },
  'to another chipset': { from: 'q35', to: 'pc-i440fx-7.2', want: MOVES('q35', 'i440fx') },
  'back from it': { from: 'pc', to: 'q35', want: MOVES('i440fx', 'q35') },
  'from none to the default': { from: '', to: 'q35' },
  'from none, which was another chipset': { from: '', to: 'q35', machineType: 'pc', want: MOVES('i440fx', 'q35') },
  'to what nobody knows': { from: 'q35', to: 'microvm' },
};
for (const [name, { from, to, machineType, want = [] }] of Object.entries(chipsets)) {
  test(`the machine type changes ${name}`, () => {
    const configuration = { ...CONFIGURATION, defaultMachineType: machineType ?? CONFIGURATION.defaultMachineType };
    assert.deepEqual(virtualMachineWarnings(aVm(machine(to)), { configuration, old: aVm(machine(from)) }), want);
    assert.deepEqual(virtualMachineWarnings(aVm(machine(to)), { configuration }), [], 'a new VM has nothing to move');
  });
}

test('machine types are those of the KubeVirt object', () => {
  const kubevirt: KubeVirt = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'KubeVirt',
    metadata: {},
    spec: { configuration: { emulatedMachines: ['pc-q35-8.*'] } },
  };
  const configuration = configurationOf(kubevirt);
  assert.deepEqual(validateVirtualMachine(aVm(machine('pc-q35-8.1')), { configuration }), []);
  assert.equal(validateVirtualMachine(aVm(machine('q35')), { configuration }).length, 1);
});

interface VmiCase {
  readonly vmi: unknown;
  readonly old?: unknown;
  readonly trusted?: boolean;
  readonly want?: string[];
}

const grace = { spec: { terminationGracePeriodSeconds: 0 } };
const labelled = { metadata: { labels: { 'kubevirt.io/nodeName': 'n1' } } };

const vmis: Record<string, VmiCase> = {
  'a valid instance': { vmi: {} },
  'an instance with a field that we do not have': {
    vmi: { spec: { dnsConfig: {} } },
    want: ['spec.dnsConfig: Forbidden: is not supported yet'],
  },
  'an instance without a domain': { vmi: { spec: { domain: null } }, want: ['spec.domain: Required value'] },
  'a label of an instance changes': { vmi: { metadata: { labels: { a: 'b' } } }, old: {} },
  'the spec of an instance changes': {
    vmi: { spec: { domain: { cpu: { cores: 4 } } } },
    old: {},
    trusted: true,
    want: ['spec: Forbidden: update of VMI object is restricted'],
  },
  'people change the grace period': {
    vmi: grace,
    old: {},
    want: ['spec: Forbidden: update of VMI object is restricted'],
  },
  'we change the grace period': { vmi: grace, old: {}, trusted: true },
  'people say where an instance runs': {
    vmi: labelled,
    old: {},
    want: [`metadata.labels: Forbidden: modification ${RESERVED}`],
  },
  'people make one that runs somewhere': {
    vmi: labelled,
    want: [`metadata.labels: Forbidden: creation ${RESERVED}`],
  },
  'we say where an instance runs': { vmi: labelled, old: {}, trusted: true },
  'people leave where an instance runs as it is': { vmi: labelled, old: labelled },
};

for (const [name, { vmi, old, trusted = false, want = [] }] of Object.entries(vmis)) {
  test(name, () => {
    const context = { configuration: CONFIGURATION, trusted, old: old === undefined ? undefined : aVmi(old) };
    assert.deepEqual(texts(validateVirtualMachineInstance(aVmi(vmi), context)), want);
  });
}

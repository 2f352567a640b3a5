/** Tests the validation of whole VMs and instances, and of updates of invalid objects. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import type { KubeVirt } from '#api/kubevirt/kind.ts';
import { aVm, aVmi, CONFIGURATION } from '#api/validation/testing/valid-objects.ts';
import { validateVirtualMachineInstance } from '#api/validation/kinds/validate-virtual-machine-instance.ts';
import { validateVirtualMachine, virtualMachineWarnings } from '#api/validation/kinds/validate-virtual-machine.ts';
import type { FieldError } from '#kube/field-error.ts';

const texts = (errors: FieldError[]) => errors.map(({ field, message }) => `${field}: ${message}`);
const machine = (type: string | null) => ({ spec: { template: { spec: { domain: { machine: { type } } } } } });
const importAnnotation = (value: unknown) => ({
  metadata: { annotations: { 'identity.selfsame.io/imported-devices': JSON.stringify(value) } },
});
const IMPORT = { from: 'OVF of oVirt 4.1', devices: [{ id: 'nic-lan', type: 'interface', device: 'virtio' }] };
const IMPORTED = 'metadata.annotations[identity.selfsame.io/imported-devices]';
const LONG = 'x'.repeat(64);
const RESERVED = 'of the following reserved kubevirt.io/ labels on a VMI object is prohibited: kubevirt.io/nodeName';

const networkSpec = (...networkNames: readonly string[]) => {
  const names = networkNames.map((_, i) => `n${i}`);
  return {
    domain: { devices: { interfaces: names.map((name) => ({ name, bridge: {} })) } },
    networks: networkNames.map((networkName, i) => ({ name: `n${i}`, multus: { networkName } })),
  };
};
const onNetworks = (...networkNames: readonly string[]) => ({
  spec: { template: { spec: networkSpec(...networkNames) } },
});

const vms: Record<string, { vm: unknown; old?: unknown; want?: string[] }> = {
  'a valid VM': { vm: {} },
  'spec.running without a run strategy': { vm: { spec: { running: true, runStrategy: null } } },
  'spec.running and a run strategy': {
    vm: { spec: { running: true } },
    want: [
      'spec.running: Forbidden: Running and RunStrategy are mutually exclusive. Note that Running is deprecated, please use RunStrategy instead',
    ],
  },
  'neither spec.running nor a run strategy': {
    vm: { spec: { runStrategy: null } },
    want: [
      'spec.runStrategy: Required value: RunStrategy must be specified: must be one of Always, Halted, Manual, RerunOnFailure, Once',
    ],
  },
  'an unknown run strategy': {
    vm: { spec: { runStrategy: 'Sometimes' } },
    want: [
      'spec.runStrategy: Invalid value: "Sometimes": Invalid RunStrategy (Sometimes): must be one of Always, Halted, Manual, RerunOnFailure, Once',
    ],
  },
  'a name that is too long for a label': {
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
  'definitions of the own namespace and of the shared one': { vm: onNetworks('golden/lan', 'default/lan', 'lan') },
  'a definition of another namespace': {
    vm: onNetworks('admin/lan'),
    want: [
      'spec.template.spec.networks[0].multus.networkName: Invalid value: "admin/lan": must be in the namespace of the VM or in "default": expected a name in "golden" or "default"',
    ],
  },
  'a definition of another namespace that is stored already': {
    vm: { spec: { ...onNetworks('admin/lan').spec, runStrategy: 'Halted' } },
    old: onNetworks('admin/lan'),
  },
  'spec.running and an empty run strategy': { vm: { spec: { running: true, runStrategy: '' } } },
  'a template without a domain': {
    vm: { spec: { template: { spec: null } } },
    want: ['spec.template.spec.domain: Required value'],
  },
  'a template with a reserved label': {
    vm: { spec: { template: { metadata: { labels: { 'kubevirt.io/nodeName': 'n1' } } } } },
    want: [`spec.template.metadata.labels: Forbidden: creation ${RESERVED}`],
  },
  'imported devices': { vm: importAnnotation(IMPORT) },
  'imported devices with the same id': {
    vm: importAnnotation({ ...IMPORT, devices: [...IMPORT.devices, ...IMPORT.devices] }),
    want: [`${IMPORTED}: Invalid value: two devices have the id nic-lan`],
  },
  'unchanged imported devices': { vm: importAnnotation(IMPORT), old: importAnnotation(IMPORT) },
  'the removal of imported devices': { vm: {}, old: importAnnotation(IMPORT) },
  'a change of imported devices': {
    vm: importAnnotation({ ...IMPORT, devices: [] }),
    old: importAnnotation(IMPORT),
    want: [`${IMPORTED}: Forbidden: may only be set when the VirtualMachine is created`],
  },
  'imported devices after creation': {
    vm: importAnnotation(IMPORT),
    old: {},
    want: [`${IMPORTED}: Forbidden: may only be set when the VirtualMachine is created`],
  },
  'an unchanged invalid spec': { vm: { ...machine('pc'), metadata: { labels: { a: 'b' } } }, old: machine('pc') },
  'an invalid spec with another change': {
    vm: { spec: { ...machine('pc').spec, runStrategy: 'Halted' } },
    old: machine('pc'),
  },
  'clearing a machine type that is no longer allowed': { vm: machine(''), old: machine('pc') },
  'removing a machine type that is no longer allowed': { vm: machine(null), old: machine('pc') },
  'changing it to an allowed machine type': { vm: machine('pc-q35-7.2'), old: machine('pc') },
  'changing it to another machine type that is not allowed': {
    vm: machine('pc-i440fx-7.2'),
    old: machine('pc'),
    want: [
      'spec.template.spec.domain.machine.type: Invalid value: "pc-i440fx-7.2": spec.template.spec.domain.machine.type is not supported: pc-i440fx-7.2 (allowed values: [q35* pc-q35*])',
    ],
  },
  'an invalid spec with a new error': {
    vm: { spec: { ...machine('pc').spec, runStrategy: 'Never' } },
    old: machine('pc'),
    want: [
      'spec.runStrategy: Invalid value: "Never": Invalid RunStrategy (Never): must be one of Always, Halted, Manual, RerunOnFailure, Once',
    ],
  },
};

for (const [name, { vm, old, want = [] }] of Object.entries(vms)) {
  test(name, () => {
    const context = { configuration: CONFIGURATION, old: old === undefined ? undefined : aVm(old) };
    assert.deepEqual(texts(validateVirtualMachine(aVm(vm), context)), want);
  });
}

test('a null machine type is allowed', () => {
  const vm = aVm();
  Object.assign(vm.spec.template.spec!.domain, { machine: { type: null } });
  assert.deepEqual(validateVirtualMachine(vm, { configuration: CONFIGURATION }), []);
  assert.deepEqual(validateVirtualMachine(vm, { configuration: CONFIGURATION, old: aVm(machine('pc')) }), []);
});

test('a restore may set imported devices, a user may not', () => {
  const context = { configuration: CONFIGURATION, old: aVm() };
  const errors = (writer?: 'restore-controller') =>
    validateVirtualMachine(aVm(importAnnotation(IMPORT)), { ...context, writer });
  assert.equal(errors().length, 1);
  assert.deepEqual(errors('restore-controller'), []);
});

test('spec.running causes a warning', () => {
  assert.deepEqual(virtualMachineWarnings(aVm(), { configuration: CONFIGURATION }), []);
  assert.deepEqual(virtualMachineWarnings(aVm({ spec: { running: false } }), { configuration: CONFIGURATION }), [
    'spec.running is deprecated, please use spec.runStrategy instead.',
  ]);
});

const CHIPSET_WARNING = (before: string, now: string) => [
  `spec.template.spec.domain.machine.type: the chipset changes from ${before} to ${now}: all devices get new addresses at the next start; virtctl identity diff db shows them`,
];
const chipsets: Record<string, { from: string; to: string; machineType?: string; want?: string[] }> = {
  'to another version': { from: 'pc-q35-6.2', to: 'pc-q35-7.2' },
  'from an alias to its type': { from: 'q35', to: 'pc-q35-7.2' },
  'to another chipset': { from: 'q35', to: 'pc-i440fx-7.2', want: CHIPSET_WARNING('q35', 'i440fx') },
  'from another chipset': { from: 'pc', to: 'q35', want: CHIPSET_WARNING('i440fx', 'q35') },
  'from no type to the default': { from: '', to: 'q35' },
  'from no type, with a default of another chipset': {
    from: '',
    to: 'q35',
    machineType: 'pc',
    want: CHIPSET_WARNING('i440fx', 'q35'),
  },
  'to an unknown chipset': { from: 'q35', to: 'microvm' },
};
for (const [name, { from, to, machineType, want = [] }] of Object.entries(chipsets)) {
  test(`the machine type changes ${name}`, () => {
    const configuration = { ...CONFIGURATION, defaultMachineType: machineType ?? CONFIGURATION.defaultMachineType };
    assert.deepEqual(virtualMachineWarnings(aVm(machine(to)), { configuration, old: aVm(machine(from)) }), want);
    assert.deepEqual(virtualMachineWarnings(aVm(machine(to)), { configuration }), [], 'no warning for a new VM');
  });
}

test('the KubeVirt object decides which machine types are allowed', () => {
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
  'an instance with an unsupported field': {
    vmi: { spec: { dnsConfig: {} } },
    want: ['spec.dnsConfig: Forbidden: is not supported yet'],
  },
  'an instance without a domain': { vmi: { spec: { domain: null } }, want: ['spec.domain: Required value'] },
  'an instance on a definition of another namespace': {
    vmi: { spec: networkSpec('default/lan', 'admin/lan') },
    want: [
      'spec.networks[1].multus.networkName: Invalid value: "admin/lan": must be in the namespace of the VM or in "default": expected a name in "golden" or "default"',
    ],
  },
  'a change of a label of an instance': { vmi: { metadata: { labels: { a: 'b' } } }, old: {} },
  'a change of the spec of an instance': {
    vmi: { spec: { domain: { cpu: { cores: 4 } } } },
    old: {},
    trusted: true,
    want: ['spec: Forbidden: update of VMI object is restricted'],
  },
  'a change of the grace period by a user': {
    vmi: grace,
    old: {},
    want: ['spec: Forbidden: update of VMI object is restricted'],
  },
  'a change of the grace period by our component': { vmi: grace, old: {}, trusted: true },
  'a node label that a user sets': {
    vmi: labelled,
    old: {},
    want: [`metadata.labels: Forbidden: modification ${RESERVED}`],
  },
  'an instance that a user creates with a node label': {
    vmi: labelled,
    want: [`metadata.labels: Forbidden: creation ${RESERVED}`],
  },
  'a node label that our component sets': { vmi: labelled, old: {}, trusted: true },
  'an unchanged node label': { vmi: labelled, old: labelled },
};

for (const [name, { vmi, old, trusted = false, want = [] }] of Object.entries(vmis)) {
  test(name, () => {
    const context = { configuration: CONFIGURATION, trusted, old: old === undefined ? undefined : aVmi(old) };
    assert.deepEqual(texts(validateVirtualMachineInstance(aVmi(vmi), context)), want);
  });
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { buildVmi } from '#controllers/vm/start/build-vmi.ts';
import { deriveMac } from '#api/identity/derived-mac.ts';
import { resolveIdentity } from '#controllers/vm/identity/identity.ts';
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import { observedGeneration, requiresRestart } from '#controllers/vm/hotplug/restart-required.ts';
import { aRecord, aVm, aVmi, aWorld, CONFIGURATION, DELETED, UUID } from '#controllers/vm/testing/vm-world.ts';

function build(vm: ReturnType<typeof aVm>, options?: { paused?: boolean }) {
  return buildVmi(vm, resolveIdentity(vm, undefined), CONFIGURATION, options);
}

test('the instance has the name of the VM, the metadata of the template and both finalizers', () => {
  const template = { metadata: { labels: { app: 'db' }, annotations: { note: 'x' } }, spec: { domain: {} } };
  const { metadata } = build(aVm({ spec: { template }, metadata: { generation: 7 } }));
  assert.deepEqual(metadata, {
    name: 'db',
    namespace: 'ns',
    labels: { app: 'db', 'vm.kubevirt.io/name': 'db' },
    annotations: { note: 'x', 'kubevirt.io/vm-generation': '7' },
    ownerReferences: [
      {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        name: 'db',
        uid: 'vm-uid',
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
    finalizers: ['kubevirt.io/foregroundDeleteVirtualMachine', 'kubevirt.io/virtualMachineControllerFinalize'],
  });
});

test('a VM name that is too long for a label gives no name label', () => {
  const vm = aVm({ metadata: { name: 'x'.repeat(64) } });
  assert.deepEqual(build(vm).metadata.labels, {});
});

test('the spec contains every default that a start decides', () => {
  const template: VmiSpec = {
    domain: { machine: { type: '' }, memory: { guest: '64Mi' } },
    volumes: [{ name: 'root', emptyDisk: { capacity: '1Gi' } }],
  };
  assert.deepEqual(build(aVm({ template })).spec, {
    domain: {
      machine: { type: 'q35' },
      memory: { guest: '64Mi' },
      firmware: { uuid: legacyUuid('db') },
      devices: {
        interfaces: [{ name: 'default', masquerade: {}, macAddress: deriveMac('vm-uid', 'default') }],
      },
    },
    networks: [{ name: 'default', pod: {} }],
    volumes: [{ name: 'root', emptyDisk: { capacity: '1Gi' } }],
  });
});

test('a machine without devices gets no devices', () => {
  const devices = { autoattachPodInterface: false };
  const { spec } = build(aVm({ template: { domain: { devices } } }));
  assert.deepEqual(spec.domain.devices, devices);
  assert.equal(spec.networks, undefined);
});

test('hotpluggable, attached, optional and absent devices are in the spec, with their recorded MAC addresses', () => {
  const claim = (name: string) => ({ name, persistentVolumeClaim: { claimName: name, hotpluggable: true } });
  const disks = [{ name: 'a' }, { name: 'b', plugged: false }, { name: 'c', optional: true }];
  const interfaces = [{ name: 'n', bridge: {}, state: 'absent' as const }];
  const volumes = ['a', 'b', 'c'].map(claim);
  const vm = aVm({ template: { domain: { devices: { disks, interfaces } }, volumes } });
  const { spec } = build(vm);
  const macAddress = deriveMac('vm-uid', 'n');
  assert.deepEqual([spec.domain.devices?.disks, spec.volumes], [disks, volumes]);
  assert.deepEqual(spec.domain.devices?.interfaces, [{ ...interfaces[0], macAddress }]);
  assert.deepEqual(resolveIdentity(vm, undefined).interfaces, [{ name: 'n', macAddress }]);
});

test('a paused start affects the instance only', () => {
  assert.equal(build(aVm(), { paused: true }).spec.startStrategy, 'Paused');
  assert.equal(build(aVm()).spec.startStrategy, undefined);
});

const grown = {
  domain: { machine: { type: 'pc-q35-7.2' }, firmware: { uuid: UUID, serial: 's1' }, cpu: { cores: 4 } },
};

const specWithSize = (size: string, uuid: string, macAddress: string): Partial<VmiSpec> => ({
  domain: {
    memory: { guest: size },
    resources: { requests: { memory: size } },
    firmware: { uuid },
    devices: { interfaces: [{ name: 'default', macAddress, masquerade: {} }] },
  },
  networks: [{ name: 'default', pod: {} }],
  volumes: [{ name: 'a', emptyDisk: { capacity: size } }],
});

/** A spec without the fields that were added for hotplug. */
const OLD: VmiSpec = {
  domain: {
    machine: { type: 'pc-q35-7.2' },
    firmware: { uuid: UUID, serial: 's1' },
    devices: {
      disks: [
        { name: 'root', disk: { bus: 'virtio' } },
        { name: 'iso', cdrom: { bus: 'sata' } },
      ],
    },
  },
  volumes: [
    { name: 'iso', hostDisk: { path: '/iso', type: 'Disk' } },
    { name: 'root', persistentVolumeClaim: { claimName: 'root' } },
  ],
};
const OLD_INSTANCE: VmiSpec = {
  ...OLD,
  domain: {
    ...OLD.domain,
    devices: {
      ...OLD.domain.devices,
      interfaces: [{ name: 'default', masquerade: {}, macAddress: deriveMac('vm-uid', 'default') }],
    },
  },
  networks: [{ name: 'default', pod: {} }],
};

const restarts: Record<string, { world: ReturnType<typeof aWorld>; want: boolean }> = {
  'a VM without an instance needs no restart': { world: aWorld({ vm: aVm({ template: grown }) }), want: false },
  'an instance that matches the template needs no restart': { world: aWorld({ vmi: aVmi('Running') }), want: false },
  'a change of the template needs a restart': {
    world: aWorld({ vm: aVm({ template: grown }), vmi: aVmi('Running') }),
    want: true,
  },
  'a change that the instance already has needs no restart': {
    world: aWorld({ vm: aVm({ template: grown }), vmi: aVmi('Running', { vm: aVm({ template: grown }) }) }),
    want: false,
  },
  'another uuid needs a restart': {
    world: aWorld({ vm: aVm({ template: { domain: { firmware: { uuid: 'other' } } } }), vmi: aVmi('Running') }),
    want: true,
  },
  'a uuid that is added to a template without one needs no restart': {
    world: aWorld({
      vm: aVm({ template: { domain: { firmware: { uuid: legacyUuid('db') } } } }),
      vmi: aVmi('Running', { vm: aVm({ template: { domain: {} } }) }),
      identity: aRecord(aVm({ template: { domain: {} } })),
    }),
    want: false,
  },
  'a removed machine type means the default': {
    world: aWorld({
      vm: aVm({ template: { domain: { machine: { type: '' } } } }),
      vmi: aVmi('Running', { vm: aVm({ template: { domain: { machine: { type: 'q35' } } } }) }),
    }),
    want: false,
  },
  'a removed machine type needs a restart if the default has changed since': {
    world: aWorld({
      vm: aVm({ template: { domain: { machine: { type: '' } } } }),
      vmi: aVmi('Running', { vm: aVm({ template: { domain: { machine: { type: 'q35' } } } }) }),
      configuration: { ...CONFIGURATION, defaultMachineType: 'pc-q35-8.2' },
    }),
    want: true,
  },
  'another notation of the same value needs no restart': {
    world: aWorld({
      vm: aVm({ template: specWithSize('1024Mi', UUID.toUpperCase(), '02:00:00:00:00:AB') }),
      vmi: aVmi('Running', { vm: aVm({ template: specWithSize('1Gi', UUID, '02:00:00:00:00:ab') }) }),
    }),
    want: false,
  },
  'another size needs a restart': {
    world: aWorld({
      vm: aVm({ template: specWithSize('1025Mi', UUID, '02:00:00:00:00:ab') }),
      vmi: aVmi('Running', { vm: aVm({ template: specWithSize('1Gi', UUID, '02:00:00:00:00:ab') }) }),
    }),
    want: true,
  },
  'start strategy and grace period need no restart': {
    world: aWorld({ vmi: aVmi('Running', { spec: { terminationGracePeriodSeconds: 0, startStrategy: 'Paused' } }) }),
    want: false,
  },
  'an instance of an older version needs no restart': {
    world: aWorld({
      vm: aVm({ template: OLD }),
      vmi: aVmi('Running', { spec: { ...OLD_INSTANCE } }),
    }),
    want: false,
  },
  'an instance under deletion needs no restart': {
    world: aWorld({ vm: aVm({ template: grown }), vmi: aVmi('Running', { metadata: DELETED }) }),
    want: false,
  },
};

for (const [name, { world, want }] of Object.entries(restarts)) {
  test(`restart required: ${name}`, () => assert.equal(requiresRestart(world), want));
}

test('the observed generation is the one from which the instance was built', () => {
  const vm = aVm({ metadata: { generation: 5 } });
  assert.equal(observedGeneration(aWorld({ vm })), 5);
  assert.equal(observedGeneration(aWorld({ vm, vmi: aVmi('Running') })), 5);
  const changed = aVm({ template: grown, metadata: { generation: 5 } });
  assert.equal(observedGeneration(aWorld({ vm: changed, vmi: aVmi('Running') })), 1);
});

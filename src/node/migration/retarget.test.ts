import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { DiskDevice, DomainDefinition, InterfaceDevice } from '#node/hardware/domain-definition.ts';
import { aDefinition, aDisk } from '#node/hypervisor/testing/a-definition.ts';
import { readDefinition } from '#node/migration/read-definition.ts';
import { retarget, type TargetFacts } from '#node/migration/retarget.ts';

const ROOT = aDisk('root', 2, { path: '/a/root', format: 'raw' });
const DRIVE: DiskDevice = {
  ...{ type: 'disk', id: 'disk-drive', name: 'drive', media: 'cdrom', bus: 'sata' },
  ...{ readonly: true, cache: 'none' },
};
const SOURCE: DomainDefinition = {
  ...aDefinition({ id: 'u-1', name: 'ns/db' }),
  kernel: { kernelPath: '/a/kernel', initrdPath: '/a/initrd', arguments: 'quiet' },
  state: { directory: '/a/state' },
  devices: [ROOT, DRIVE],
};
const TARGET: TargetFacts = {
  instance: { namespace: 'ns', name: 'db', uid: 'u-1' },
  volumes: new Map([['root', { source: { path: '/b/root', format: 'qcow2' }, readonly: false }]]),
  kernel: { kernelPath: '/b/kernel', initrdPath: '/b/initrd' },
  stateDirectory: '/b/state',
  capabilities: {
    machines: [{ name: SOURCE.machine, deprecated: false, maxCpus: 4 }],
    accelerator: 'tcg',
    version: 'QEMU 7.2',
  },
  spec: {
    domain: {
      cpu: {
        model: SOURCE.cpu.model,
        sockets: SOURCE.cpu.sockets,
        cores: SOURCE.cpu.cores,
        threads: SOURCE.cpu.threads,
      },
      memory: { guest: `${Math.ceil(SOURCE.memoryKib / 1024)}Mi` },
    },
    networks: [{ name: 'a', multus: { networkName: 'br0' } }],
  },
};
const NIC: InterfaceDevice = {
  ...{ type: 'interface', id: 'nic-a', name: 'a', model: 'virtio', macAddress: '02:00:00:00:00:01' },
  backend: { type: 'bridge', bridge: 'br0' },
};

describe('a guest on the target node', () => {
  it('is the same except for its paths', () => {
    const { id, name, machine, cpu, memoryKib, firmware, acpi, smm } = SOURCE;
    assert.deepEqual(retarget(SOURCE, TARGET), {
      definition: {
        ...{ id, name, machine, cpu, memoryKib, firmware, acpi, smm },
        kernel: { kernelPath: '/b/kernel', initrdPath: '/b/initrd', arguments: 'quiet' },
        state: { directory: '/b/state' },
        devices: [{ ...ROOT, source: { path: '/b/root', format: 'qcow2' } }, DRIVE],
      },
    });
  });

  it('may use the bridges of its instance', () => {
    assert.ok('definition' in retarget({ ...SOURCE, devices: [NIC] }, TARGET));
  });

  it('uses the page cache if the file system of the node has no direct I/O', () => {
    const volumes = new Map([['root', { ...TARGET.volumes.get('root')!, cacheNone: false }]]);
    const result = retarget({ ...SOURCE, devices: [{ ...ROOT, cache: 'none' }] }, { ...TARGET, volumes });
    assert.ok('definition' in result);
    assert.deepEqual(
      result.definition.devices.map((device) => device.type === 'disk' && device.cache),
      ['writeback'],
    );
  });

  const refusals: Record<string, { source?: Partial<DomainDefinition>; target?: Partial<TargetFacts>; why: RegExp }> = {
    'it belongs to another instance': { source: { id: 'u-2' }, why: /instead of "ns\/db"/ },
    'it has another name': { source: { name: 'ns/other' }, why: /belongs to "ns\/other"/ },
    'the node does not support its machine type': {
      source: { machine: 'pc-q35-9.9' },
      why: /does not support machine type/,
    },
    'a disk has no prepared volume': { target: { volumes: new Map() }, why: /no volume was prepared for disk "root"/ },
    'a disk has an unexpected id': { source: { devices: [{ ...ROOT, id: 'disk-x' }] }, why: /no volume was prepared/ },
    'a disk is read-only on the node': {
      target: { volumes: new Map([['root', { source: { path: '/b', format: 'raw' }, readonly: true }]]) },
      why: /read-only/,
    },
    'it has more memory than its instance': { source: { memoryKib: SOURCE.memoryKib + 2048 }, why: /more memory/ },
    'it has more CPUs than its instance': {
      source: { cpu: { ...SOURCE.cpu, cores: 64 } },
      why: /CPU of the guest \(.* 64 cores/,
    },
    'its CPU model needs an accelerator that the node does not have': {
      source: { cpu: { ...SOURCE.cpu, model: 'host' } },
      target: { spec: { domain: { ...TARGET.spec.domain, cpu: { ...TARGET.spec.domain.cpu, model: 'host-model' } } } },
      why: /CPU of the guest \(host,.* target node \(max,/,
    },
    'it uses a bridge that is not a network of its instance': {
      source: { devices: [{ ...NIC, backend: { type: 'bridge', bridge: 'br-admin' } }] },
      why: /bridge "br-admin"/,
    },
    'the built-in guest is not installed': { target: { kernel: undefined }, why: /built-in guest/ },
    'no volume was prepared for its state': { target: { stateDirectory: undefined }, why: /state/ },
  };
  for (const [sentence, { source, target, why }] of Object.entries(refusals)) {
    it(`is refused if ${sentence}`, () => {
      const result = retarget({ ...SOURCE, ...source }, { ...TARGET, ...target });
      assert.match('refused' in result ? result.refused : '', why);
    });
  }
});

describe('a definition from another node', () => {
  const read = (change: object) => readDefinition(JSON.parse(JSON.stringify({ ...SOURCE, ...change })));

  it('is parsed without a change', () => assert.deepEqual(read({}), SOURCE));

  const nic = {
    type: 'interface',
    id: 'nic-a',
    name: 'a',
    model: 'virtio',
    macAddress: '02:00:00:00:00:01',
    backend: { type: 'bridge', bridge: 'br0' },
  };
  const other = {
    type: 'other',
    id: 'usb',
    driver: 'qemu-xhci',
    row: { type: 'controller', device: 'usb', specParams: { model: 'qemu-xhci' } },
  };
  const good: Record<string, object> = { 'a NIC on a bridge': nic, 'an unmanaged device': other };
  for (const [sentence, device] of Object.entries(good)) {
    it(`may have ${sentence}`, () => assert.ok(read({ devices: [device] })));
  }

  const bad: Record<string, object> = {
    'has an unknown field': { extra: 1 },
    'was created through the host API': { origin: 'host-api' },
    'has no machine type': { machine: undefined },
    'has a machine type with options': { machine: 'q35,kernel=/etc/shadow' },
    'has no list of devices': { devices: {} },
    'has a device without a type': { devices: [{ id: 'a' }] },
    'has a device of an inherited type': { devices: [{ id: 'a', type: 'constructor' }] },
    'has two devices with the same id': { devices: [ROOT, ROOT] },
    'has an id with options': { devices: [{ ...ROOT, id: 'disk-a,b=c' }] },
    'has a bridge with options': { devices: [{ ...nic, backend: { type: 'bridge', bridge: 'br0,x=y' } }] },
    'has an unknown network backend': { devices: [{ ...nic, backend: { type: 'tap', script: '/bin/sh' } }] },
    'has a device with another driver than its row': { devices: [{ ...other, driver: 'vfio-pci' }] },
    'has a device with an invalid row': { devices: [{ ...other, row: 5 }] },
    'has an invalid memory size': { memoryKib: 'much' },
  };
  for (const [sentence, change] of Object.entries(bad)) {
    it(`is rejected if it ${sentence}`, () => assert.equal(read(change), undefined));
  }
});

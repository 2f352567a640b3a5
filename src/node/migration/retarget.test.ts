import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { DiskDevice, DomainDefinition, InterfaceDevice } from '#node/definition/domain-definition.ts';
import { aDefinition, aDisk } from '#node/hypervisor/testing/a-definition.ts';
import { readDefinition } from '#node/migration/read-definition.ts';
import { retarget, type Ground } from '#node/migration/retarget.ts';

const ROOT = aDisk('root', 2, { path: '/a/root', format: 'raw' }) as DiskDevice;
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
const GROUND: Ground = {
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

describe('a guest on the ground of another node', () => {
  it('is the same, but for its paths', () => {
    const { id, name, machine, cpu, memoryKib, firmware, acpi, smm } = SOURCE;
    assert.deepEqual(retarget(SOURCE, GROUND), {
      definition: {
        ...{ id, name, machine, cpu, memoryKib, firmware, acpi, smm },
        kernel: { kernelPath: '/b/kernel', initrdPath: '/b/initrd', arguments: 'quiet' },
        state: { directory: '/b/state' },
        devices: [{ ...ROOT, source: { path: '/b/root', format: 'qcow2' } }, DRIVE],
      },
    });
  });

  it('may be on the bridges that its instance names', () => {
    assert.ok('definition' in retarget({ ...SOURCE, devices: [NIC] }, GROUND));
  });

  it('has a cache where the file system of this node cannot do without', () => {
    const volumes = new Map([['root', { ...GROUND.volumes.get('root')!, cacheNone: false }]]);
    const here = retarget({ ...SOURCE, devices: [{ ...ROOT, cache: 'none' }] }, { ...GROUND, volumes });
    assert.ok('definition' in here);
    assert.deepEqual(
      here.definition.devices.map((device) => device.type === 'disk' && device.cache),
      ['writeback'],
    );
  });

  const refusals: Record<string, { source?: Partial<DomainDefinition>; ground?: Partial<Ground>; why: RegExp }> = {
    'of another instance': { source: { id: 'u-2' }, why: /not that of/ },
    'under another name': { source: { name: 'ns/other' }, why: /not that of/ },
    'of a machine type that is not here': { source: { machine: 'pc-q35-9.9' }, why: /no machine type/ },
    'with a disk for which nothing is prepared': { ground: { volumes: new Map() }, why: /nothing was prepared for/ },
    'with a disk under a strange id': { source: { devices: [{ ...ROOT, id: 'disk-x' }] }, why: /nothing was prepared/ },
    'with a disk that cannot be written here': {
      ground: { volumes: new Map([['root', { source: { path: '/b', format: 'raw' }, readonly: true }]]) },
      why: /cannot be written/,
    },
    'with more memory than its instance': { source: { memoryKib: SOURCE.memoryKib + 2048 }, why: /more memory/ },
    'with more processors than its instance': {
      source: { cpu: { ...SOURCE.cpu, cores: 64 } },
      why: /other processors \(.* 64 cores/,
    },
    'with processors that only an accelerator has': {
      source: { cpu: { ...SOURCE.cpu, model: 'host' } },
      ground: { spec: { domain: { ...GROUND.spec.domain, cpu: { ...GROUND.spec.domain.cpu, model: 'host-model' } } } },
      why: /other processors \(host,.* here \(max,/,
    },
    'on a bridge that its instance does not name': {
      source: { devices: [{ ...NIC, backend: { type: 'bridge', bridge: 'br-admin' } }] },
      why: /bridge br-admin/,
    },
    'without the files of its kernel': { ground: { kernel: undefined }, why: /built-in guest/ },
    'without a place for its state': { ground: { stateDirectory: undefined }, why: /state/ },
  };
  for (const [what, { source, ground, why }] of Object.entries(refusals)) {
    it(`is refused ${what}`, () => {
      const here = retarget({ ...SOURCE, ...source }, { ...GROUND, ...ground });
      assert.match('refused' in here ? here.refused : '', why);
    });
  }
});

describe('a definition from another node', () => {
  const read = (change: object) => readDefinition(JSON.parse(JSON.stringify({ ...SOURCE, ...change })));

  it('is read as it was written', () => assert.deepEqual(read({}), SOURCE));

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
  const good: Record<string, object> = { 'a NIC on a bridge': nic, 'hardware that is passed back': other };
  for (const [what, device] of Object.entries(good)) {
    it(`may have ${what}`, () => assert.ok(read({ devices: [device] })));
  }

  const bad: Record<string, object> = {
    'has what nobody knows': { extra: 1 },
    'came by the host API': { origin: 'host-api' },
    'lacks its machine': { machine: undefined },
    'has a machine with options': { machine: 'q35,kernel=/etc/shadow' },
    'has no list of devices': { devices: {} },
    'has a device of no type': { devices: [{ id: 'a' }] },
    'has a device of an inherited type': { devices: [{ id: 'a', type: 'constructor' }] },
    'has a device twice': { devices: [ROOT, ROOT] },
    'has an id with options': { devices: [{ ...ROOT, id: 'disk-a,b=c' }] },
    'has a bridge with options': { devices: [{ ...nic, backend: { type: 'bridge', bridge: 'br0,x=y' } }] },
    'has another backend': { devices: [{ ...nic, backend: { type: 'tap', script: '/bin/sh' } }] },
    'has another driver than its row': { devices: [{ ...other, driver: 'vfio-pci' }] },
    'has hardware of no row': { devices: [{ ...other, row: 5 }] },
    'has memory in words': { memoryKib: 'much' },
  };
  for (const [what, change] of Object.entries(bad)) {
    it(`is none where it ${what}`, () => assert.equal(read(change), undefined));
  }
});

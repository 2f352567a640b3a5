/** Interfaces that come and go while the guest runs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deriveMac } from '#api/identity/derived-mac.ts';
import { planHotplug } from '#controllers/vm/hotplug/hotplug.ts';
import {
  nic,
  absent,
  template,
  worldOf,
  afterHotplug,
  type Case,
  testHotplug,
} from '#controllers/vm/hotplug/testing/hotplug-scene.ts';
import { aRecord, aVm } from '#controllers/vm/testing/vm-world.ts';

const cases: Record<string, Case> = {
  'a new interface of the template is plugged in, with its network': {
    runs: [nic('a', { macAddress: '02:00:00:00:00:01' })],
    template: [nic('a', { macAddress: '02:00:00:00:00:01' }), nic('b', { macAddress: '02:00:00:00:00:02' })],
    want: 'a b',
    events: ['HotplugInterface'],
  },
  'a new interface with a boot order needs a restart': {
    runs: [nic('a')],
    template: [nic('a'), nic('b', { bootOrder: 1 })],
    want: 'a',
    restart: true,
  },
  'an interface that becomes absent is unplugged when the record says so': {
    runs: [nic('a'), nic('b')],
    template: [nic('a'), absent('b')],
    rows: ['nic-a', 'nic-b!'],
    want: 'a (b)',
    events: ['UnplugInterface'],
  },
  'an interface that becomes absent stays until the record says so': {
    runs: [nic('a'), nic('b')],
    template: [nic('a'), absent('b')],
    rows: ['nic-a', 'nic-b'],
    want: 'a b',
  },
  'an interface with a boot order stays until a restart': {
    runs: [nic('a', { bootOrder: 1 })],
    template: [absent('a')],
    rows: ['nic-a!'],
    want: 'a',
    restart: true,
  },
  'an absent interface that the record does not have is unplugged at once': {
    runs: [nic('a'), nic('b')],
    template: [nic('a'), absent('b')],
    rows: ['nic-a'],
    want: 'a (b)',
    events: ['UnplugInterface'],
  },
  'an absent interface stays while the record is not current: its address would be lost': {
    runs: [nic('a'), nic('b')],
    template: [nic('a'), absent('b')],
    rows: ['nic-a'],
    hashes: ['h2', 'h1'],
    want: 'a b',
  },
  'an absent interface without a row is unplugged when the record is current': {
    runs: [nic('a'), nic('b')],
    template: [nic('a'), absent('b')],
    rows: ['nic-a'],
    hashes: ['h2', 'h2'],
    want: 'a (b)',
    events: ['UnplugInterface'],
  },
  'an absent interface is plugged in again': {
    runs: [nic('a'), absent('b')],
    template: [nic('a'), nic('b', { state: 'up', model: 'virtio' })],
    rows: ['nic-b'],
    want: 'a b',
    events: ['HotplugInterface'],
  },
  'an absent interface is plugged in again when the record says so': {
    runs: [nic('a'), absent('b')],
    template: [nic('a'), nic('b')],
    rows: ['nic-b!'],
    want: 'a (b)',
  },
  'the link goes down and up while the guest runs': {
    runs: [nic('a'), nic('b', { state: 'down' })],
    template: [nic('a', { state: 'down' }), nic('b')],
    want: 'a! b',
    events: ['InterfaceLink', 'InterfaceLink'],
  },
  'the link state up is the default': { runs: [nic('a')], template: [nic('a', { state: 'up' })], want: 'a' },
  'an interface is plugged in again with its link down': {
    runs: [nic('a'), absent('b')],
    template: [nic('a'), nic('b', { state: 'down' })],
    rows: ['nic-b'],
    want: 'a b!',
    events: ['HotplugInterface'],
  },
  'an absent interface that has changed needs a restart': {
    runs: [absent('b')],
    template: [nic('b', { model: 'e1000e' })],
    want: '(b)',
    restart: true,
  },
  'an absent interface that the instance never had changes nothing': {
    runs: [nic('a')],
    template: [nic('a'), absent('b')],
    want: 'a',
  },
  'an absent interface that is removed from the template changes nothing': {
    runs: [nic('a'), absent('b')],
    template: [nic('a')],
    want: 'a (b)',
  },
  'a plugged interface that is removed from the template stays until a restart': {
    runs: [nic('a'), nic('b')],
    template: [nic('a')],
    want: 'a b',
    restart: true,
  },
  'a changed interface needs a restart': {
    runs: [nic('a')],
    template: [nic('a', { model: 'e1000e' })],
    want: 'a',
    restart: true,
  },
  'the order of interfaces does not matter': {
    runs: [nic('a'), nic('b')],
    template: [nic('b'), nic('a')],
    want: 'a b',
  },
};

testHotplug(cases);

test('the MAC address of an interface is recorded before the guest sees it', () => {
  const world = worldOf({ runs: [nic('a')], template: [nic('a'), nic('b')] });
  const known = { ...aRecord(aVm({ template: template([nic('a')]) })) };
  const [change, ...others] = planHotplug({ ...world, identity: known })?.changes ?? [];
  assert.ok(change?.do === 'patch' && others.length === 0);
  assert.equal(change.type.kind, 'VirtualMachineIdentity');
  const macs = ['a', 'b'].map((name) => ({ name, macAddress: deriveMac('vm-uid', name) }));
  assert.deepEqual(change.patch.body, { metadata: { resourceVersion: '1' }, spec: { interfaces: macs } });
  const { interfaces } = afterHotplug(world).spec.domain.devices ?? {};
  assert.equal(interfaces?.[1]?.macAddress, deriveMac('vm-uid', 'b'));
});

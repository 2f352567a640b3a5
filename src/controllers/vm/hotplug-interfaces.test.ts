/** Interfaces that come and go while the guest runs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { derivedMac } from '#api/derived-mac.ts';
import { hotplug } from '#controllers/vm/hotplug.ts';
import {
  nic,
  absent,
  template,
  worldOf,
  after,
  type Case,
  proveHotplug,
} from '#controllers/vm/testing/hotplug-scene.ts';
import { aRecord, aVm } from '#controllers/vm/vm-world.fixture.ts';

const cases: Record<string, Case> = {
  'an interface that the template gets is plugged in, with its network': {
    runs: [nic('a', { macAddress: '02:00:00:00:00:01' })],
    template: [nic('a', { macAddress: '02:00:00:00:00:01' }), nic('b', { macAddress: '02:00:00:00:00:02' })],
    want: 'a b',
    events: ['HotplugInterface'],
  },
  'one to boot from waits for a restart': {
    runs: [nic('a')],
    template: [nic('a'), nic('b', { bootOrder: 1 })],
    want: 'a',
    restart: true,
  },
  'an interface that is absent is unplugged when that is on record': {
    runs: [nic('a'), nic('b')],
    template: [nic('a'), absent('b')],
    rows: ['nic-a', 'nic-b!'],
    want: 'a (b)',
    events: ['UnplugInterface'],
  },
  'until then it stays': {
    runs: [nic('a'), nic('b')],
    template: [nic('a'), absent('b')],
    rows: ['nic-a', 'nic-b'],
    want: 'a b',
  },
  'one that the guest has booted from stays until a restart': {
    runs: [nic('a', { bootOrder: 1 })],
    template: [absent('a')],
    rows: ['nic-a!'],
    want: 'a',
    restart: true,
  },
  'an absent one does not wait for a record that has no such interface': {
    runs: [nic('a'), nic('b')],
    template: [nic('a'), absent('b')],
    rows: ['nic-a'],
    want: 'a (b)',
    events: ['UnplugInterface'],
  },
  'unless that has not been read yet: its address would be lost': {
    runs: [nic('a'), nic('b')],
    template: [nic('a'), absent('b')],
    rows: ['nic-a'],
    hashes: ['h2', 'h1'],
    want: 'a b',
  },
  'once it has, there is nothing to wait for': {
    runs: [nic('a'), nic('b')],
    template: [nic('a'), absent('b')],
    rows: ['nic-a'],
    hashes: ['h2', 'h2'],
    want: 'a (b)',
    events: ['UnplugInterface'],
  },
  'it comes back': {
    runs: [nic('a'), absent('b')],
    template: [nic('a'), nic('b', { state: 'up', model: 'virtio' })],
    rows: ['nic-b'],
    want: 'a b',
    events: ['HotplugInterface'],
  },
  'when that is on record, too': {
    runs: [nic('a'), absent('b')],
    template: [nic('a'), nic('b')],
    rows: ['nic-b!'],
    want: 'a (b)',
  },
  'its link goes down and comes up while it runs': {
    runs: [nic('a'), nic('b', { state: 'down' })],
    template: [nic('a', { state: 'down' }), nic('b')],
    want: 'a! b',
    events: ['InterfaceLink', 'InterfaceLink'],
  },
  'that it is up need not be said': { runs: [nic('a')], template: [nic('a', { state: 'up' })], want: 'a' },
  'it comes back without a link': {
    runs: [nic('a'), absent('b')],
    template: [nic('a'), nic('b', { state: 'down' })],
    rows: ['nic-b'],
    want: 'a b!',
    events: ['HotplugInterface'],
  },
  'but as another one only with a restart': {
    runs: [absent('b')],
    template: [nic('b', { model: 'e1000e' })],
    want: '(b)',
    restart: true,
  },
  'an absent one that the instance never had is nothing to do': {
    runs: [nic('a')],
    template: [nic('a'), absent('b')],
    want: 'a',
  },
  'nor is one that the template no longer has': { runs: [nic('a'), absent('b')], template: [nic('a')], want: 'a (b)' },
  'one that the template loses without that stays until a restart': {
    runs: [nic('a'), nic('b')],
    template: [nic('a')],
    want: 'a b',
    restart: true,
  },
  'one that has changed waits for a restart': {
    runs: [nic('a')],
    template: [nic('a', { model: 'e1000e' })],
    want: 'a',
    restart: true,
  },
  'the order of interfaces means nothing': { runs: [nic('a'), nic('b')], template: [nic('b'), nic('a')], want: 'a b' },
};

proveHotplug(cases);

test('the MAC address of an interface is on record before the guest sees it', () => {
  const world = worldOf({ runs: [nic('a')], template: [nic('a'), nic('b')] });
  const known = { ...aRecord(aVm({ template: template([nic('a')]) })) };
  const [change, ...others] = hotplug({ ...world, identity: known })?.changes ?? [];
  assert.ok(change?.do === 'patch' && others.length === 0);
  assert.equal(change.type.kind, 'VirtualMachineIdentity');
  const macs = ['a', 'b'].map((name) => ({ name, macAddress: derivedMac('vm-uid', name) }));
  assert.deepEqual(change.patch.body, { metadata: { resourceVersion: '1' }, spec: { interfaces: macs } });
  const { interfaces } = after(world).spec.domain.devices ?? {};
  assert.equal(interfaces?.[1]?.macAddress, derivedMac('vm-uid', 'b'));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { firmwareUuidOf } from '#api/identity/firmware-uuid-index.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { ChangeListener, Informer } from '#client/informer.ts';
import { ValueHolders, vmAndSharerSource } from '#controllers/vm/identity/value-holders.ts';
import { aVm, DELETED, UUID } from '#controllers/vm/testing/vm-world.ts';
import type { Stored } from '#kube/meta.ts';

const describeSharers = (holders: ValueHolders, key: string): string => {
  const sharers = holders.sharersOf('u', key);
  return sharers === undefined ? '' : [...sharers.names, ...(sharers.hasMore ? ['...'] : [])].join(' ');
};

test('each VM reports up to three others, and together they report all', () => {
  const holders = new ValueHolders();
  const expect = (want: Record<string, string>) => {
    for (const [key, names] of Object.entries(want)) assert.equal(describeSharers(holders, key), names, key);
  };
  holders.setValue('c', undefined, 'u');
  expect({ c: '' });
  holders.setValue('a', undefined, 'u');
  expect({ a: 'c', c: 'a' });
  for (const key of ['d', 'b']) holders.setValue(key, undefined, 'u');
  expect({ a: 'b c d', b: 'a c d', c: 'a b d', d: 'a b c' });
  holders.setValue('e', undefined, 'u');
  expect({ a: 'b c d ...', b: 'c d e ...', c: 'a d e ...', d: 'a b e ...', e: 'a b c ...' });
  holders.setValue('b', 'u', 'v');
  expect({ a: 'c d e', c: 'a d e', d: 'a c e', e: 'a c d' });
});

test('a change returns only the VMs whose report changes', () => {
  const keys = Array.from({ length: 40 }, (_, n) => `ns-${String((n * 17) % 40).padStart(2, '0')}/db`);
  const holders = new ValueHolders();
  const seen = new Map<string, string>();
  const check = (key: string, from: string | undefined, to: string | undefined) => {
    const woken = new Set([key, ...holders.setValue(key, from, to)]);
    assert.ok(woken.size <= 5, `${woken.size} for one`);
    if (to === undefined) seen.delete(key);
    for (const other of keys) {
      if (other !== key && !seen.has(other)) continue;
      if (woken.has(other)) seen.set(other, describeSharers(holders, other));
      else assert.equal(describeSharers(holders, other), seen.get(other), `${other} after ${key}`);
    }
    if (to === undefined) seen.delete(key);
  };
  for (const key of keys) check(key, undefined, 'u');
  assert.equal(holders.sharingCount, 40);
  for (const key of keys.toSorted()) check(key, 'u', undefined);
  assert.equal(holders.sharingCount, 0);
});

test('VMs with a shared uuid are counted once each', () => {
  const holders = new ValueHolders();
  const counts = (
    [
      ['a', undefined, 'u'],
      ['b', undefined, 'u'],
      ['b', undefined, 'u'],
      ['c', undefined, 'u'],
      ['c', 'u', 'v'],
      ['a', 'u', undefined],
      ['a', 'u', undefined],
    ] as const
  ).map(([key, from, to]) => {
    holders.setValue(key, from, to);
    return holders.sharingCount;
  });
  assert.deepEqual(counts, [0, 2, 2, 3, 2, 0, 0]);
});

test('uuids ignore case; VMs under deletion and empty uuids do not count', () => {
  const firmware = (uuid: string) => ({ template: { domain: { firmware: { uuid } } } });
  assert.equal(firmwareUuidOf(aVm(firmware(UUID.toUpperCase()))), UUID);
  assert.equal(firmwareUuidOf(aVm({ metadata: DELETED })), undefined);
  assert.equal(firmwareUuidOf(aVm(firmware(''))), undefined);
  assert.equal(firmwareUuidOf(aVm({ template: { domain: {} } })), undefined);
  assert.equal(firmwareUuidOf(aVm({ spec: { template: {} } })), undefined);
});

test('sharers are woken when a uuid is added, changed or removed, and not by other writes', () => {
  let listener: ChangeListener<VirtualMachine> = () => assert.fail('there is no listener');
  const vms = { onChange: (given: typeof listener) => ((listener = given), () => undefined) };
  const woken: string[] = [];
  const holders = { uuids: new ValueHolders(), macs: new ValueHolders() };
  vmAndSharerSource(vms as unknown as Informer<VirtualMachine>, holders).subscribe((key) => woken.push(key));
  const vm = aVm();
  const changes: Record<string, [key: string, old: Stored<VirtualMachine> | undefined, Stored<VirtualMachine>?]> = {
    'the first is added': ['ns/db', undefined, vm],
    'another is added': ['two/db', undefined, vm],
    'its status is written': ['two/db', vm, aVm({ status: { created: true } })],
    'it is under deletion': ['two/db', vm, aVm({ metadata: DELETED })],
    'it is gone': ['two/db', aVm({ metadata: DELETED })],
  };
  const seen = Object.entries(changes).map(([name, [key, old, next]]) => {
    woken.length = 0;
    listener(key, { old, new: next });
    // The VMs have the same uid, so that their derived MAC addresses are the same as well.
    return `${name}: ${[...new Set(woken)].join()}`;
  });
  assert.deepEqual(seen, [
    'the first is added: ns/db',
    'another is added: two/db,ns/db',
    'its status is written: two/db',
    'it is under deletion: two/db,ns/db',
    'it is gone: two/db',
  ]);
});

test('sharers are woken when a MAC address is added, changed or removed', () => {
  let listener: ChangeListener<VirtualMachine> = () => assert.fail('there is no listener');
  const vms = { onChange: (given: typeof listener) => ((listener = given), () => undefined) };
  const woken: string[] = [];
  const holders = { uuids: new ValueHolders(), macs: new ValueHolders() };
  vmAndSharerSource(vms as unknown as Informer<VirtualMachine>, holders).subscribe((key) => woken.push(key));
  const withMac = (...macs: string[]) => {
    const interfaces = macs.map((macAddress, i) => ({ name: `n${i}`, macAddress }));
    return aVm({ template: { domain: { firmware: {}, devices: { interfaces } } } });
  };
  const [one, two] = ['02:00:00:00:00:01', '02-00-00-00-00-02'];
  const steps: [string, Stored<VirtualMachine> | undefined, Stored<VirtualMachine> | undefined, string, number][] = [
    ['ns/a', undefined, withMac(one, two), 'ns/a', 0],
    ['ns/b', undefined, withMac(two.replaceAll('-', ':')), 'ns/b,ns/a', 2],
    ['ns/b', withMac(two), withMac(one), 'ns/b,ns/a,ns/a', 2],
    ['ns/b', withMac(one), undefined, 'ns/b,ns/a', 0],
  ];
  for (const [key, old, next, want, count] of steps) {
    woken.length = 0;
    listener(key, { old, new: next });
    assert.equal(woken.join(), want);
    assert.equal(holders.macs.sharingCount, count);
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { firmwareUuidOf } from '#api/firmware-uuid-index.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { ChangeListener, Informer } from '#client/informer.ts';
import { UuidHolders, vmSource } from '#controllers/vm/uuid-holders.ts';
import { aVm, DELETED, UUID } from '#controllers/vm/vm-world.fixture.ts';
import type { Stored } from '#kube/meta.ts';

const told = (holders: UuidHolders, key: string): string => {
  const sharers = holders.sharersOf('u', key);
  return sharers === undefined ? '' : [...sharers.names, ...(sharers.more ? ['...'] : [])].join(' ');
};

test('each is told of up to three others, and all of them together of everybody', () => {
  const holders = new UuidHolders();
  const expect = (want: Record<string, string>) => {
    for (const [key, names] of Object.entries(want)) assert.equal(told(holders, key), names, key);
  };
  holders.move('c', undefined, 'u');
  expect({ c: '' });
  holders.move('a', undefined, 'u');
  expect({ a: 'c', c: 'a' });
  for (const key of ['d', 'b']) holders.move(key, undefined, 'u');
  expect({ a: 'b c d', b: 'a c d', c: 'a b d', d: 'a b c' });
  holders.move('e', undefined, 'u');
  expect({ a: 'b c d ...', b: 'c d e ...', c: 'a d e ...', d: 'a b e ...', e: 'a b c ...' });
  holders.move('b', 'u', 'v');
  expect({ a: 'c d e', c: 'a d e', d: 'a c e', e: 'a c d' });
});

test('whoever is to be told something else is looked at, and nobody else, however many there are', () => {
  const keys = Array.from({ length: 40 }, (_, n) => `ns-${String((n * 17) % 40).padStart(2, '0')}/db`);
  const holders = new UuidHolders();
  const seen = new Map<string, string>();
  const check = (key: string, from: string | undefined, to: string | undefined) => {
    const looked = new Set([key, ...holders.move(key, from, to)]);
    assert.ok(looked.size <= 5, `${looked.size} for one`);
    if (to === undefined) seen.delete(key);
    for (const other of keys) {
      if (other !== key && !seen.has(other)) continue;
      if (looked.has(other)) seen.set(other, told(holders, other));
      else assert.equal(told(holders, other), seen.get(other), `${other} after ${key}`);
    }
    if (to === undefined) seen.delete(key);
  };
  for (const key of keys) check(key, undefined, 'u');
  assert.equal(holders.sharing, 40);
  for (const key of keys.toSorted()) check(key, 'u', undefined);
  assert.equal(holders.sharing, 0);
});

test('VMs that share theirs are counted, once each', () => {
  const holders = new UuidHolders();
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
    holders.move(key, from, to);
    return holders.sharing;
  });
  assert.deepEqual(counts, [0, 2, 2, 3, 2, 0, 0]);
});

test('a uuid is the same in any case, and that of a VM that goes, or an empty one, does not count', () => {
  const firmware = (uuid: string) => ({ template: { domain: { firmware: { uuid } } } });
  assert.equal(firmwareUuidOf(aVm(firmware(UUID.toUpperCase()))), UUID);
  assert.equal(firmwareUuidOf(aVm({ metadata: DELETED })), undefined);
  assert.equal(firmwareUuidOf(aVm(firmware(''))), undefined);
  assert.equal(firmwareUuidOf(aVm({ template: { domain: {} } })), undefined);
  assert.equal(firmwareUuidOf(aVm({ spec: { template: {} } })), undefined);
});

test('others are looked at when a uuid comes, changes or goes, and not at each write', () => {
  let listener: ChangeListener<VirtualMachine> = () => assert.fail('nobody listens');
  const vms = { onChange: (given: typeof listener) => ((listener = given), () => undefined) };
  const looked: string[] = [];
  vmSource(vms as unknown as Informer<VirtualMachine>, new UuidHolders()).subscribe((key) => looked.push(key));
  const vm = aVm();
  const changes: Record<string, [key: string, old: Stored<VirtualMachine> | undefined, Stored<VirtualMachine>?]> = {
    'the first comes': ['ns/db', undefined, vm],
    'another comes': ['two/db', undefined, vm],
    'its status is written': ['two/db', vm, aVm({ status: { created: true } })],
    'it is to go': ['two/db', vm, aVm({ metadata: DELETED })],
    'it is gone': ['two/db', aVm({ metadata: DELETED })],
  };
  const seen = Object.entries(changes).map(([name, [key, old, next]]) => {
    looked.length = 0;
    listener(key, { old, new: next });
    return `${name}: ${looked.join()}`;
  });
  assert.deepEqual(seen, [
    'the first comes: ns/db',
    'another comes: two/db,ns/db',
    'its status is written: two/db',
    'it is to go: two/db,ns/db',
    'it is gone: two/db',
  ]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deriveMac } from '#api/identity/derived-mac.ts';
import {
  findMacDuplicates,
  macDuplicatesAsValue,
  macDuplicatesTable,
  toListedMacHolders,
} from '#cli/commands/identity/duplicate-macs.ts';

const MAC = '02:00:00:00:0d:01';
const aVm = (place: string, interfaces: unknown, metadata: object = {}) => {
  const [namespace, name] = place.split('/');
  return {
    metadata: { namespace, name, ...metadata },
    spec: { template: { spec: { domain: { devices: { interfaces } } } } },
    status: { printableStatus: 'Running' },
  };
};
const fleet = [
  aVm('team-b/web', [{ name: 'lan', macAddress: '02-00-00-00-0D-01' }, { name: 'wan' }]),
  aVm('team-a/db', [{ name: 'default', macAddress: MAC }]),
  aVm('team-a/alone', [{ name: 'default', macAddress: '02:00:00:00:0d:02' }]),
  aVm('team-a/gone', [{ name: 'default', macAddress: MAC }], { deletionTimestamp: '2026-01-01T00:00:00Z' }),
  aVm('team-a/odd', 'no list'),
  'not an object',
].flatMap(toListedMacHolders);

test('finds interfaces with the same MAC address, however it is written', () => {
  assert.deepEqual(macDuplicatesAsValue(findMacDuplicates(fleet)), [
    {
      macAddress: MAC,
      virtualMachines: [
        { namespace: 'team-a', name: 'db', interface: 'default' },
        { namespace: 'team-b', name: 'web', interface: 'lan' },
      ],
    },
  ]);
  assert.deepEqual(findMacDuplicates(fleet, 'team-c'), []);
});

test('compares an address that is derived from a VM with the one that an import of it has in its template', () => {
  const source = aVm('team-a/db', [{ name: 'default' }], { uid: 'a-uid' });
  const imported = aVm('team-a/db-copy', [{ name: 'default', macAddress: deriveMac('a-uid', 'default') }]);
  const [duplicate] = findMacDuplicates([source, imported].flatMap(toListedMacHolders));
  assert.deepEqual(
    duplicate?.holders.map(({ name }) => name),
    ['db', 'db-copy'],
  );
});

test('prints a table of the interfaces', () => {
  assert.equal(
    macDuplicatesTable(findMacDuplicates(fleet, 'team-b')),
    [
      'MAC                 NAMESPACE   NAME   INTERFACE   STATUS',
      `${MAC}   team-a      db     default     Running`,
      `${MAC}   team-b      web    lan         Running`,
    ].join('\n'),
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addressDuplicatesAsValue,
  addressDuplicatesTable,
  findAddressDuplicates,
  toListedAddressHolders,
  toRecordedIdentity,
} from '#cli/commands/identity/duplicate-addresses.ts';

const aVm = (place: string, request?: object) => {
  const [namespace, name] = place.split('/');
  const annotations = request && { 'network.kubevirt.io/addresses': JSON.stringify(request) };
  return {
    metadata: { namespace, name, uid: `uid-${name}`, annotations },
    spec: {
      template: {
        spec: { domain: { devices: { interfaces: [{ name: 'default' }] } }, networks: [{ name: 'default', pod: {} }] },
      },
    },
    status: { printableStatus: 'Running' },
  };
};
const aRecord = (name: string, addresses?: string[]) => ({
  metadata: { name, ownerReferences: [{ kind: 'VirtualMachine', name, uid: `uid-${name}`, controller: true }] },
  spec: { interfaces: [{ name: 'default', macAddress: '02:00:00:00:00:01', addresses }] },
});

const records = [aRecord('db', ['10.244.0.50']), aRecord('web', ['10.244.0.60']), aRecord('new'), 'not an object'];
const recorded = new Map(
  records.flatMap((record) => [toRecordedIdentity(record) ?? []].filter((one) => one.length > 0) as [string, object][]),
);
const fleet = [
  aVm('team-a/db'),
  aVm('team-b/late', { default: ['10.244.0.50/16'] }),
  aVm('team-b/web'),
  aVm('team-b/new'),
  { metadata: {}, spec: { template: { spec: { domain: { devices: { interfaces: 'no list' } } } } } },
].flatMap((vm) => toListedAddressHolders(vm, recorded));

test('finds addresses that one VM has recorded and another one asks for', () => {
  const duplicates = findAddressDuplicates(fleet);
  assert.deepEqual(addressDuplicatesAsValue(duplicates), [
    {
      address: '10.244.0.50',
      virtualMachines: [
        { namespace: 'team-a', name: 'db', interface: 'default' },
        { namespace: 'team-b', name: 'late', interface: 'default' },
      ],
    },
  ]);
  assert.match(
    addressDuplicatesTable(duplicates),
    /^ADDRESS +NAMESPACE +NAME +INTERFACE +STATUS\n10.244.0.50 +team-a +db +default +Running\n/,
  );
  assert.deepEqual(findAddressDuplicates(fleet, 'team-c'), []);
});

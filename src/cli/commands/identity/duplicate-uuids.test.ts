import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  duplicatesAsValue,
  findUuidDuplicates,
  duplicatesTable,
  toListedUuidHolder,
  type ListedUuidHolder,
} from '#cli/commands/identity/duplicate-uuids.ts';

const A = '0a000000-0000-4000-8000-000000000000';
const B = 'b0000000-0000-4000-8000-000000000000';

const aVm = (firmware?: object, metadata: object = {}) => ({
  metadata: { namespace: 'lab', name: 'db', ...metadata },
  spec: { template: { spec: { domain: { firmware } } } },
  status: { printableStatus: 'Running' },
});
const read: Record<string, { vm: unknown; want: ListedUuidHolder | undefined }> = {
  'a uuid, in lower case': {
    vm: aVm({ uuid: B.toUpperCase() }),
    want: { uuid: B, namespace: 'lab', name: 'db', status: 'Running' },
  },
  'no firmware': { vm: aVm(), want: undefined },
  'an empty uuid': { vm: aVm({ uuid: '' }), want: undefined },
  'one that is being deleted': { vm: aVm({ uuid: A }, { deletionTimestamp: '2026-01-01T00:00:00Z' }), want: undefined },
  'a value that is not an object': { vm: 'db', want: undefined },
};
for (const [title, { vm, want }] of Object.entries(read)) {
  test(`reads ${title}`, () => assert.deepEqual(toListedUuidHolder(vm), want));
}

const aHolder = (uuid: string, place: string, status = 'Stopped'): ListedUuidHolder => {
  const [namespace = '', name = ''] = place.split('/');
  return { uuid, namespace, name, status };
};
const fleet = [
  aHolder(B, 'team-b/web'),
  aHolder(A, 'team-b/db', 'Running'),
  aHolder('c', 'team-a/alone'),
  aHolder(B, 'team-b/app'),
  aHolder(A, 'team-a/db-2', ''),
  aHolder(B, 'team-b-2/app'),
];

const grouped: Record<string, { namespace?: string; want: string[] }> = {
  'by uuid, then namespace and name': {
    want: [`${A} team-a/db-2 team-b/db`, `${B} team-b/app team-b/web team-b-2/app`],
  },
  'duplicates of a namespace, including other namespaces': {
    namespace: 'team-a',
    want: [`${A} team-a/db-2 team-b/db`],
  },
  'nothing for a namespace without duplicates': { namespace: 'lab', want: [] },
};
for (const [title, { namespace, want }] of Object.entries(grouped)) {
  test(`groups ${title}`, () => {
    const shown = findUuidDuplicates(fleet, namespace).map(({ uuid, holders }) =>
      [uuid, ...holders.map((holder) => `${holder.namespace}/${holder.name}`)].join(' '),
    );
    assert.deepEqual(shown, want);
  });
}

test('aligns the table like kubectl', () => {
  assert.equal(
    duplicatesTable(findUuidDuplicates(fleet)),
    [
      'UUID                                   NAMESPACE   NAME   STATUS',
      `${A}   team-a      db-2   <none>`,
      `${A}   team-b      db     Running`,
      `${B}   team-b      app    Stopped`,
      `${B}   team-b      web    Stopped`,
      `${B}   team-b-2    app    Stopped`,
    ].join('\n'),
  );
});

test('prints JSON as a list, even if it is empty', () => {
  assert.deepEqual(duplicatesAsValue(findUuidDuplicates(fleet, 'team-a')), [
    {
      uuid: A,
      virtualMachines: [
        { namespace: 'team-a', name: 'db-2' },
        { namespace: 'team-b', name: 'db' },
      ],
    },
  ]);
  assert.deepEqual(duplicatesAsValue([]), []);
});

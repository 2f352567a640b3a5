/** The history steps of the tour can fail: if a change is missing, or if one is recorded that was not made. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HistoryEntry, IdentityChange, VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { changesOfImport, changesOfTour, findHistoryError } from '#cli/tour/history.ts';

const MACHINES = { first: 'pc-q35-6.2', other: 'pc-q35-7.2' };
const EDITS = { uuid: 'v', serial: 'tour-serial', macAddress: '02:00:00:00:00:02' };
const EXPECTED = changesOfTour(MACHINES, EDITS);
const MAC = 'interfaces.default.macAddress';
const disk = (id: string) => ({ id, type: 'disk', device: 'disk' });
const entry = (cause: string, ...changes: IdentityChange[]): HistoryEntry => ({ cause, changes });

const WHOLE: readonly HistoryEntry[] = [
  entry(
    'first start',
    { field: 'firmware.uuid', to: 'u' },
    { field: 'firmware.serial', to: 's' },
    { field: MAC, to: '02:00:00:00:00:01' },
  ),
  entry(
    'the start of instance x',
    { field: 'machine.type', to: MACHINES.first },
    { field: 'stateClaim', to: 'claim-1' },
    { field: 'devices.disk-data', to: disk('disk-data') },
  ),
  entry('edit of the VM', { field: 'devices.disk-plugged', to: disk('disk-plugged') }),
  entry('edit of the VM', { field: 'devices.disk-plugged', from: disk('disk-plugged') }),
  entry('migration move', { field: 'stateClaim', from: 'claim-1', to: 'claim-2' }),
  entry('VirtualMachineRestore back-to-then (uid)', { field: 'stateClaim', from: 'claim-2', to: 'claim-3' }),
  entry(
    'edit of the VM',
    { field: 'firmware.uuid', from: 'u', to: EDITS.uuid },
    { field: 'firmware.serial', from: 's', to: EDITS.serial },
    { field: MAC, from: '02:00:00:00:00:01', to: EDITS.macAddress },
  ),
  entry('transition by Job machine-types-x', { field: 'machine.type', from: MACHINES.first, to: MACHINES.other }),
];
const IMPORTED: readonly HistoryEntry[] = [
  entry(
    'the import of the VM',
    { field: 'firmware.uuid', to: EDITS.uuid },
    { field: 'firmware.serial', to: EDITS.serial },
    { field: MAC, to: EDITS.macAddress },
    { field: 'machine.type', to: MACHINES.other },
    { field: 'devices.disk-data', to: disk('disk-data') },
  ),
  entry('the start of instance y', { field: 'stateClaim', to: 'claim-3' }),
];

function aRecord(history: readonly HistoryEntry[]): VirtualMachineIdentity {
  const { uuid, serial, macAddress } = EDITS;
  const spec = { firmware: { uuid, serial }, interfaces: [{ name: 'default', macAddress }] };
  const machine = { type: MACHINES.other };
  return {
    apiVersion: 'identity.selfsame.io/v1',
    kind: 'VirtualMachineIdentity',
    metadata: { name: 'selfsame' },
    spec,
    status: { machine, stateClaim: 'claim-3', devices: [disk('disk-data')], recorded: spec, history: [...history] },
  };
}

test('a whole history is complete', () => assert.equal(findHistoryError(aRecord(WHOLE), EXPECTED), undefined));

for (const [index, { cause }] of WHOLE.entries()) {
  test(`a history without entry ${index} (${cause}) is not complete`, () => {
    assert.notEqual(findHistoryError(aRecord(WHOLE.toSpliced(index, 1)), EXPECTED), undefined);
  });
}

test('a history whose replay differs from the record, or with another uuid, is not complete', () => {
  const more = entry('edit of the VM', { field: 'devices.disk-x', to: disk('disk-x') });
  assert.equal(findHistoryError(aRecord([...WHOLE, more]), EXPECTED), 'replaying it does not yield the record');
  const uuids = ['w', EDITS.uuid].map((to, i) =>
    entry('x', { field: 'firmware.uuid', from: [EDITS.uuid, 'w'][i], to }),
  );
  assert.equal(findHistoryError(aRecord([...WHOLE, ...uuids]), EXPECTED), 'the uuid or a MAC address changed unasked');
});

test('the history of the imported VM begins with its import', () => {
  const expected = changesOfImport(MACHINES, EDITS);
  assert.equal(findHistoryError(aRecord(IMPORTED), expected), undefined);
  assert.match(findHistoryError(aRecord(WHOLE), expected) ?? '', /^no entry records a change of firmware.uuid/);
});

/** Tests that the last step of the tour detects an incomplete history, and changes that the tour did not make. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HistoryEntry, IdentityChange, VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { findHistoryError } from '#cli/tour/history.ts';

const MACHINES = { first: 'pc-q35-6.2', other: 'pc-q35-7.2' };
const disk = (id: string) => ({ id, type: 'disk', device: 'disk' });
const entry = (cause: string, ...changes: IdentityChange[]): HistoryEntry => ({ cause, changes });

const WHOLE: readonly HistoryEntry[] = [
  entry('first start', { field: 'firmware.uuid', to: 'u' }, { field: 'firmware.serial', to: 's' }),
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
    { field: 'firmware.serial', from: 's', to: 'tour-serial' },
    { field: 'machine.type', from: MACHINES.first, to: MACHINES.other },
  ),
];

function aRecord(history: readonly HistoryEntry[]): VirtualMachineIdentity {
  const spec = { firmware: { uuid: 'u', serial: 'tour-serial' } };
  const machine = { type: MACHINES.other };
  return {
    apiVersion: 'identity.selfsame.io/v1',
    kind: 'VirtualMachineIdentity',
    metadata: { name: 'selfsame' },
    spec,
    status: { machine, stateClaim: 'claim-3', devices: [disk('disk-data')], recorded: spec, history: [...history] },
  };
}

test('accepts a complete history', () => assert.equal(findHistoryError(aRecord(WHOLE), MACHINES), undefined));

for (const [index, { cause }] of WHOLE.entries()) {
  test(`a history without entry ${index} (${cause}) is not`, () => {
    assert.notEqual(findHistoryError(aRecord(WHOLE.toSpliced(index, 1)), MACHINES), undefined);
  });
}

test('rejects a history whose replay differs or that changes the uuid', () => {
  const more = entry('edit of the VM', { field: 'devices.disk-x', to: disk('disk-x') });
  assert.equal(findHistoryError(aRecord([...WHOLE, more]), MACHINES), 'replaying it does not yield the record');
  const uuids = ['u', 'v', 'u']
    .slice(1)
    .map((to, i) => entry('x', { field: 'firmware.uuid', from: ['u', 'v'][i], to }));
  assert.equal(findHistoryError(aRecord([...WHOLE, ...uuids]), MACHINES), 'the uuid or a MAC address changed');
});

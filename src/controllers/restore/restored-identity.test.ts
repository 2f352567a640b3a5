import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { IdentityStatus, VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { restoreRecordAfterVm } from '#controllers/restore/restored-identity.ts';
import { aContent, aRecord, aVm, aWorld } from '#controllers/restore/testing/restore-world.ts';
import type { Stored } from '#kube/meta.ts';

const disk = { id: 'disk-root', type: 'disk', device: 'disk', address: { type: 'pci', slot: '0x02' } };
const moved = { ...disk, address: { type: 'pci', slot: '0x03' } };

/** Returns the devices that a restore writes into the record of a VM that has `disk`. */
function restoredDevices(saved: IdentityStatus): IdentityStatus['devices'] {
  const vm = aVm();
  const first = aRecord();
  const record: Stored<VirtualMachineIdentity> = { ...first, status: { ...first.status, devices: [disk] } };
  const content = aContent({ identity: { spec: record.spec, status: saved } });
  const world = aWorld({ vm, record, content });
  let step = restoreRecordAfterVm(world, content.spec, vm);
  // The spec of the record is written first.
  if (step !== undefined && 'change' in step && step.change.do === 'patch' && step.change.subresource === undefined) {
    const [, { value }] = step.change.patch.body as [unknown, { value: VirtualMachineIdentity['spec'] }];
    step = restoreRecordAfterVm({ ...world, record: { ...record, spec: value } }, content.spec, vm);
  }
  assert.ok(step !== undefined && 'change' in step && step.change.do === 'patch');
  assert.equal(step.change.subresource, 'status');
  const [, { value }] = step.change.patch.body as [unknown, { value: IdentityStatus }];
  return value.devices;
}

test('a restore sets the devices back to those of the snapshot', () => {
  assert.deepEqual(restoredDevices({ devices: [moved] }), [moved]);
});

test('a snapshot from before the first start removes no devices', () => {
  assert.deepEqual(restoredDevices({ recorded: {}, history: [] }), [disk]);
});

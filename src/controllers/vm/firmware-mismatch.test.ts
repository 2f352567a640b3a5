import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BOOT_FIRMWARE_ANNOTATION } from '#api/storage/boot-firmware.ts';
import { decideVm } from '#controllers/vm/decide-vm.ts';
import { firmwareMismatchCondition } from '#controllers/vm/firmware-mismatch.ts';
import { aVm, aVmi, aWorld, UUID } from '#controllers/vm/testing/vm-world.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';

const DISK = {
  domain: {
    machine: { type: 'pc-q35-7.2' },
    firmware: { uuid: UUID, serial: 's1' },
    devices: { disks: [{ name: 'root', disk: {} }] },
  },
  volumes: [{ name: 'root', persistentVolumeClaim: { claimName: 'root' } }],
};
const claimFor = (firmware: string) => [
  {
    name: 'root',
    claim: {
      apiVersion: 'v1' as const,
      kind: 'PersistentVolumeClaim' as const,
      metadata: { name: 'root', annotations: { [BOOT_FIRMWARE_ANNOTATION]: firmware } },
      spec: {},
    },
  },
];
const VM = aVm({ template: DISK });
const running = (conditions: NonNullable<VmiStatus['conditions']> = []) =>
  aVmi('Running', { vm: VM, status: { conditions } });

const cases: Record<string, { world: Partial<VmWorld>; want: boolean }> = {
  'a guest with the other firmware': { world: { vmi: running(), claims: claimFor('efi') }, want: true },
  'a guest with the right firmware': { world: { vmi: running(), claims: claimFor('bios') }, want: false },
  'a guest whose agent responds': {
    world: { vmi: running([{ type: 'AgentConnected', status: 'True' }]), claims: claimFor('efi') },
    want: false,
  },
  'a VM that does not run': { world: { claims: claimFor('efi') }, want: false },
};
for (const [title, { world, want }] of Object.entries(cases)) {
  test(`FirmwareMismatch: ${title}`, () => assert.equal(firmwareMismatchCondition(aWorld(world)) !== undefined, want));
}

test('the firmware that cannot boot the image is reported in a condition and one Event', () => {
  const world = { vm: VM, vmi: running(), claims: claimFor('efi') };
  const { events = [], status } = decideVm(aWorld(world));
  const reported = events.find(({ reason }) => reason === 'FirmwareMismatch');
  assert.match(reported?.message ?? '', /^the VM boots with BIOS, but the image of PersistentVolumeClaim "root"/);
  const { conditions = [] } = status as VmStatus;
  assert.ok(conditions.some(({ type }) => type === 'FirmwareMismatch'));
  const again = decideVm(aWorld({ ...world, vm: aVm({ template: DISK, status: status as VmStatus }) }));
  assert.deepEqual(again.events, []);
});

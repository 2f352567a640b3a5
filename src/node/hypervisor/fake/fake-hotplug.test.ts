/** Tests the control of the devices of a simulated guest, and the addresses that it accepts. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { driveAddress } from '#node/hardware/drive-address.ts';
import type { DiskDevice, DomainDefinition } from '#node/hardware/domain-definition.ts';
import { HypervisorError, type DomainInspection } from '#node/hypervisor/hypervisor.ts';
import { aDefinition, aDisk } from '#node/hypervisor/testing/a-definition.ts';
import { createFakeHypervisor, type FakeHypervisorOptions } from '#node/hypervisor/fake/fake-hypervisor.ts';
import { findPlaceError } from '#node/hypervisor/fake/fake-places.ts';

const DISK = aDisk('late', 4, { path: '/disks/late', format: 'raw' });
const SCSI: DiskDevice = { ...DISK, id: 'disk-scsi', bus: 'scsi', address: driveAddress(3) };

async function aGuest(options: Partial<FakeHypervisorOptions> = {}) {
  const hypervisor = createFakeHypervisor({ clock: new FakeClock(), ...options });
  await hypervisor.adopt();
  const { devices } = aDefinition();
  const definition = aDefinition({ devices: [...devices, DISK, SCSI] });
  await hypervisor.create(definition);
  const idsOf = () => hypervisor.inspect(definition.id)?.definition.devices.map(({ id }) => id) ?? [];
  return { hypervisor, id: definition.id, idsOf };
}

describe('devices of simulated guests', () => {
  it('are held until the guest releases one or all of them', async () => {
    const { hypervisor, id, idsOf } = await aGuest();
    hypervisor.guest(id).holdDevices();
    await hypervisor.unplug(id, DISK.id);
    await hypervisor.unplug(id, SCSI.id);
    assert.deepEqual(hypervisor.inspect(id)?.unplugging, [DISK.id, SCSI.id]);
    assert.equal(hypervisor.get(id)?.deviceEvents, 0);
    const changes: string[] = [];
    hypervisor.onChange((changed) => changes.push(changed));

    hypervisor.guest(id).releaseDevices(SCSI.id);
    assert.deepEqual(hypervisor.inspect(id)?.unplugging, [DISK.id]);
    hypervisor.guest(id).releaseDevices();

    assert.ok(!idsOf().includes(DISK.id) && !idsOf().includes(SCSI.id));
    assert.equal(hypervisor.get(id)?.deviceEvents, 2);
    assert.deepEqual(changes, [id, id]);
  });

  it('stay plugged without an unplug request', async () => {
    const { hypervisor, id, idsOf } = await aGuest();
    hypervisor.guest(id).releaseDevices();
    assert.ok(idsOf().includes(DISK.id));
  });

  it('are released when a paused guest resumes, SCSI disks at once', async () => {
    const { hypervisor, id, idsOf } = await aGuest();
    await hypervisor.pause(id);
    await hypervisor.unplug(id, DISK.id);
    await hypervisor.unplug(id, SCSI.id);
    assert.ok(idsOf().includes(DISK.id) && !idsOf().includes(SCSI.id));

    await hypervisor.resume(id);

    assert.ok(!idsOf().includes(DISK.id));
  });

  it('are found by the next process, which has to repeat unplug requests', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'fake-hotplug-'));
    try {
      const { hypervisor, id } = await aGuest({ dir });
      const late = { ...DISK, id: 'disk-later', address: { ...DISK.address, bus: '0x07' } };
      await hypervisor.plug(id, late);
      hypervisor.guest(id).holdDevices();
      await hypervisor.unplug(id, DISK.id);
      const before = hypervisor.inspect(id);

      const next = createFakeHypervisor({ clock: new FakeClock(), dir });
      await next.adopt();

      const want: DomainInspection = { ...before!, unplugging: [] };
      assert.deepEqual(next.inspect(id), want);
      next.guest(id).releaseDevices();
      assert.ok(next.inspect(id)?.definition.devices.every((device) => device.id !== DISK.id));
    } finally {
      rmSync(dir, { recursive: true });
    }
  });

  it('fail to plug once after failNextPlug', async () => {
    const { hypervisor, id, idsOf } = await aGuest();
    const late = { ...DISK, id: 'disk-later', address: { ...DISK.address, bus: '0x07' } };
    hypervisor.failNextPlug(new HypervisorError('no free slot'));

    await assert.rejects(hypervisor.plug(id, late), /no free slot/);
    await hypervisor.plug(id, late);

    assert.ok(idsOf().includes('disk-later'));
  });
});

const q35 = aDefinition({ devices: [...aDefinition().devices, DISK, SCSI] });
const i440fx: DomainDefinition = {
  ...q35,
  machine: 'pc-i440fx-7.2',
  devices: [{ ...DISK, id: 'disk-first', address: { ...DISK.address, bus: '0x00', slot: '0x04' } }],
};
const at = (bus: string, slot = '0x00'): DiskDevice => ({ ...DISK, address: { ...DISK.address, bus, slot } });

const places: Record<string, { guest: DomainDefinition; device: DiskDevice; want: RegExp | undefined }> = {
  'an empty port': { guest: q35, device: at('0x06'), want: undefined },
  'a port in use': { guest: q35, device: at('0x04'), want: /in use by disk-late/ },
  'a port that the guest does not have': { guest: q35, device: at('0x20'), want: /'rp31' not found/ },
  'the root bus of q35': { guest: q35, device: at('0x00', '0x0c'), want: /does not support hotplugging/ },
  'no address': { guest: q35, device: { ...DISK, address: {} }, want: /no PCI address/ },
  'an empty slot of i440fx': { guest: i440fx, device: at('0x00', '0x05'), want: undefined },
  'a slot of i440fx in use': { guest: i440fx, device: at('0x00', '0x04'), want: /in use by disk-first/ },
  'a port of i440fx': { guest: i440fx, device: at('0x01'), want: /not found/ },
  'a free unit': { guest: q35, device: { ...SCSI, address: driveAddress(4) }, want: undefined },
  'a unit in use': { guest: q35, device: SCSI, want: /lun already used by 'disk-scsi'/ },
  'a unit without a controller': { guest: i440fx, device: SCSI, want: /not found/ },
  'a SATA unit': { guest: q35, device: { ...SCSI, bus: 'sata' }, want: /does not support hotplugging/ },
};

for (const [name, { guest, device, want }] of Object.entries(places)) {
  it(`checks the address of a device: ${name}`, () => {
    const error = findPlaceError(guest, device);
    if (want === undefined) assert.equal(error, undefined);
    else assert.match(error ?? 'none', want);
  });
}

/** Devices that are plugged and unplugged while the guest runs. */
import assert from 'node:assert/strict';
import { pciAddressToMap } from '#api/devices/pci-address.ts';
import { behindPort } from '#api/devices/root-ports.ts';
import { driveAddress } from '#node/hardware/drive-address.ts';
import type { DiskDevice, InterfaceDevice, PluggableDevice } from '#node/hardware/domain-definition.ts';
import { HypervisorError, type DomainInspection, type Hypervisor } from '#node/hypervisor/hypervisor.ts';
import { startGuest, stateOf, type Cases, type ConformanceScene } from '#node/hypervisor/testing/scene.ts';

/** Free in every guest of a scene, as is SCSI unit 7. Port 0 has the interface, and there are eight ports. */
const FREE_PORT = 5;
const TAKEN_PORT = 0;
const MISSING_PORT = 20;
const UNIT = 7;

export const hotplugCases: Cases = {
  'plugs disks and interfaces at their addresses': async (scene) => {
    const { hypervisor } = scene;
    const id = await startGuest(scene);
    const before = eventsOf(hypervisor, id);
    const changed: string[] = [];
    hypervisor.onChange((one) => changed.push(one));
    const devices = [await virtioDisk(scene), await scsiDisk(scene), nic(FREE_PORT + 1)];

    for (const device of devices) await hypervisor.plug(id, device);

    for (const device of devices) await assertPlugged(hypervisor, id, device);
    assert.ok(eventsOf(hypervisor, id) >= before + devices.length);
    assert.ok(changed.length >= devices.length && changed.every((one) => one === id));
    assert.equal(stateOf(hypervisor, id), 'running');
  },

  'sets the link of an interface down and up, and remembers it': async (scene) => {
    const { hypervisor } = scene;
    const id = await startGuest(scene);
    const linkOf = (of: Hypervisor) => {
      const found = of.inspect(id)?.definition.devices.find((device) => device.type === 'interface');
      return found?.type === 'interface' ? [found.id, found.link] : [];
    };
    const [nicId = ''] = linkOf(hypervisor);

    await hypervisor.setLink(id, nicId, 'down');
    await hypervisor.setLink(id, nicId, 'down');
    assert.deepEqual(linkOf(hypervisor), [nicId, 'down']);
    await hypervisor.setLink(id, 'nic-missing', 'down');

    const next = await scene.reopen();
    await next.adopt();
    assert.deepEqual(linkOf(next), [nicId, 'down']);
    await next.setLink(id, nicId, 'up');
    assert.deepEqual(linkOf(next), [nicId, undefined]);
  },

  'plugs a device into a paused guest': async (scene) => {
    const id = await startGuest(scene, { paused: true });
    const disk = await virtioDisk(scene);
    await scene.hypervisor.plug(id, disk);
    await assertPlugged(scene.hypervisor, id, disk);
    assert.equal(stateOf(scene.hypervisor, id), 'paused');
  },

  'plugs no device twice': async (scene) => {
    const { hypervisor } = scene;
    const id = await startGuest(scene);
    const disk = await virtioDisk(scene);
    await hypervisor.plug(id, disk);
    const events = eventsOf(hypervisor, id);

    await hypervisor.plug(id, disk);

    assert.equal(eventsOf(hypervisor, id), events);
    assert.deepEqual(
      idsOf(hypervisor, id).filter((one) => one === disk.id),
      [disk.id],
    );
  },

  'refuses an address in use or out of range permanently, and leaves nothing behind': async (scene) => {
    const { hypervisor } = scene;
    const id = await startGuest(scene);
    await hypervisor.plug(id, await scsiDisk(scene));
    const before = { ids: idsOf(hypervisor, id), learned: await hypervisor.learn(id) };
    const disk = await virtioDisk(scene);
    const impossible: PluggableDevice[] = [
      { ...disk, address: port(TAKEN_PORT) },
      { ...disk, address: port(MISSING_PORT) },
      { ...disk, bus: 'scsi', address: driveAddress(UNIT) },
      nic(TAKEN_PORT),
      nic(MISSING_PORT),
    ];

    for (const device of impossible) {
      await assert.rejects(
        hypervisor.plug(id, device),
        (error) => error instanceof HypervisorError && error.permanent && error.message.includes(device.id),
      );
    }

    assert.deepEqual({ ids: idsOf(hypervisor, id), learned: await hypervisor.learn(id) }, before);
    // Leftovers of the attempts would now be in the way.
    for (const device of [disk, nic(FREE_PORT + 1)]) {
      await hypervisor.plug(id, device);
      await assertPlugged(hypervisor, id, device);
    }
  },

  'unplugs a disk, and plugs it again at its address': async (scene) => {
    const { hypervisor } = scene;
    const id = await startGuest(scene);
    const disk = await scsiDisk(scene);
    await hypervisor.plug(id, disk);
    const events = eventsOf(hypervisor, id);

    await hypervisor.unplug(id, disk.id);
    await waitUntilUnplugged(hypervisor, id, disk.id);

    assert.ok(eventsOf(hypervisor, id) > events);
    await hypervisor.plug(id, disk);
    await assertPlugged(hypervisor, id, disk);
  },

  'releases requested devices at a restart of the guest at the latest': async (scene) => {
    const { hypervisor } = scene;
    const id = await startGuest(scene);
    const devices = [await virtioDisk(scene), nic(FREE_PORT + 1)];
    for (const device of devices) await hypervisor.plug(id, device);

    for (const device of devices) {
      await hypervisor.unplug(id, device.id);
      await hypervisor.unplug(id, device.id);
    }
    await hypervisor.reset(id);
    for (const device of devices) await waitUntilUnplugged(hypervisor, id, device.id);

    for (const device of devices) await hypervisor.plug(id, device);
  },

  'reports devices that a paused guest was asked to release, which stay until then': async (scene) => {
    const { hypervisor } = scene;
    const id = await startGuest(scene, { paused: true });

    await hypervisor.unplug(id, 'nic-default');

    assert.deepEqual(hypervisor.inspect(id)?.unplugging, ['nic-default']);
    assert.ok(idsOf(hypervisor, id).includes('nic-default'));
    assert.ok((await hypervisor.learn(id)).some((device) => device.id === 'nic-default'));
  },

  'ignores an unplug of an unknown device': async (scene) => {
    const id = await startGuest(scene);
    const events = eventsOf(scene.hypervisor, id);
    await scene.hypervisor.unplug(id, 'disk-missing');
    assert.deepEqual(scene.hypervisor.inspect(id)?.unplugging, []);
    assert.equal(eventsOf(scene.hypervisor, id), events);
  },

  'permanently refuses to unplug devices that belong to the machine': async (scene) => {
    const id = await startGuest(scene);
    for (const deviceId of ['rng0', 'disk-tray']) {
      await assert.rejects(
        scene.hypervisor.unplug(id, deviceId),
        (error) => error instanceof HypervisorError && error.permanent && error.message.includes(deviceId),
      );
      assert.ok(idsOf(scene.hypervisor, id).includes(deviceId));
    }
  },

  'plugs devices directly on the buses of i440fx': async (scene) => {
    const { hypervisor } = scene;
    const ide = { type: 'drive', controller: '0', bus: '1', target: '0', unit: '0' };
    const guest = scene.definition({
      machine: 'pc-i440fx-7.2',
      devices: [
        { type: 'scsi-controller', id: 'scsi0', address: slot('0x03') },
        { ...nic(0), id: 'nic-default', name: 'default', model: 'e1000', address: slot('0x04') },
        { ...(await disk(scene, 'ide')), bus: 'ide', media: 'cdrom', readonly: true, address: ide },
        { ...(await disk(scene, 'floppy')), bus: 'fdc', media: 'floppy', address: driveAddress(1) },
        { type: 'serial', id: 'serial0' },
      ],
    });
    await hypervisor.create(guest);
    const learned = new Map((await hypervisor.learn(guest.id)).map((device) => [device.id, device.address]));
    for (const { id, address } of guest.devices) assert.deepEqual(learned.get(id), address, `the address of ${id}`);

    const late = { ...(await virtioDisk(scene)), address: slot('0x09') };
    for (const device of [late, await scsiDisk(scene)]) {
      await hypervisor.plug(guest.id, device);
      await assertPlugged(hypervisor, guest.id, device);
    }
    await assert.rejects(
      hypervisor.plug(guest.id, { ...nic(0), address: slot('0x09') }),
      (error) => error instanceof HypervisorError && error.permanent,
    );
    await hypervisor.unplug(guest.id, late.id);
    await hypervisor.reset(guest.id);
    await waitUntilUnplugged(hypervisor, guest.id, late.id);
  },

  'finds plugged devices again, but not released ones': async (scene) => {
    const id = await startGuest(scene);
    const [stays, goes] = [await virtioDisk(scene), await scsiDisk(scene)];
    for (const device of [stays, goes]) await scene.hypervisor.plug(id, device);
    await scene.hypervisor.unplug(id, goes.id);

    // Possibly before the event that the disk was released.
    const next = await scene.reopen();
    await next.adopt();

    await waitUntilUnplugged(next, id, goes.id);
    await assertPlugged(next, id, stays);
    await next.plug(id, goes);
    await assertPlugged(next, id, goes);
  },

  'returns the definition of a domain, also after it has ended': async (scene) => {
    const { hypervisor } = scene;
    const wanted = scene.definition({ origin: 'host-api' });
    assert.equal(hypervisor.inspect(wanted.id), undefined);
    await hypervisor.create(wanted);
    assert.equal(hypervisor.get(wanted.id)?.origin, 'host-api');
    const want: DomainInspection = { definition: wanted, unplugging: [] };
    assert.deepEqual(hypervisor.inspect(wanted.id), want);

    await hypervisor.destroy(wanted.id);

    assert.deepEqual(hypervisor.inspect(wanted.id)?.definition, wanted);
    const disk = await virtioDisk(scene);
    await assert.rejects(hypervisor.plug(wanted.id, disk), HypervisorError);
    await assert.rejects(hypervisor.plug('missing', disk), HypervisorError);
    await assert.rejects(hypervisor.unplug('missing', disk.id), HypervisorError);
  },
};

function eventsOf(hypervisor: Hypervisor, id: string): number {
  return hypervisor.get(id)?.deviceEvents ?? Number.NaN;
}

function idsOf(hypervisor: Hypervisor, id: string): string[] {
  return (hypervisor.inspect(id)?.definition.devices ?? []).map((device) => device.id);
}

async function assertPlugged(hypervisor: Hypervisor, id: string, device: PluggableDevice): Promise<void> {
  const { definition, unplugging } = hypervisor.inspect(id) ?? {};
  assert.deepEqual(
    definition?.devices.find((one) => one.id === device.id),
    device,
  );
  assert.deepEqual(unplugging, []);
  const learned = (await hypervisor.learn(id)).find((one) => one.id === device.id);
  assert.deepEqual(learned?.address, device.address, `the address of ${device.id}`);
  assert.equal(learned?.name, device.name);
}

/** Waits until the guest has released the device; the test's timeout is the limit. */
async function waitUntilUnplugged(hypervisor: Hypervisor, id: string, deviceId: string): Promise<void> {
  await new Promise<void>((resolve) => {
    const check = () => {
      if (idsOf(hypervisor, id).includes(deviceId)) return;
      stop();
      resolve();
    };
    const stop = hypervisor.onChange(check);
    check();
  });
  assert.equal(hypervisor.inspect(id)?.unplugging.includes(deviceId), false);
  assert.ok((await hypervisor.learn(id)).every((one) => one.id !== deviceId));
}

async function virtioDisk(scene: ConformanceScene): Promise<DiskDevice> {
  return { ...(await disk(scene, 'late')), bus: 'virtio', address: port(FREE_PORT) };
}

async function scsiDisk(scene: ConformanceScene): Promise<DiskDevice> {
  return { ...(await disk(scene, 'late-scsi')), bus: 'scsi', serial: 'LATE', address: driveAddress(UNIT) };
}

async function disk(scene: ConformanceScene, name: string): Promise<Omit<DiskDevice, 'bus'>> {
  const source = { path: await scene.diskFile(), format: 'raw' } as const;
  return { type: 'disk', id: `disk-${name}`, name, media: 'disk', source, readonly: false, cache: 'writeback' };
}

function nic(index: number): InterfaceDevice {
  return {
    type: 'interface',
    id: 'nic-late',
    name: 'late',
    model: 'virtio',
    macAddress: '02:00:00:00:00:99',
    backend: { type: 'user' },
    address: port(index),
  };
}

function slot(text: string): Record<string, string> {
  return { ...port(0), bus: '0x00', slot: text };
}

function port(index: number): Record<string, string> {
  return pciAddressToMap(behindPort(index));
}

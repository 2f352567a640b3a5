/** Hotplug that fails, with a simulated QEMU. Real hotplug is in test/e2e/hypervisor-qemu.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import type { DomainDefinition, InterfaceDevice } from '#node/hardware/domain-definition.ts';
import { ownUserAccess } from '#node/hypervisor/qemu/process/file-access.ts';
import { aDefinition, aDisk } from '#node/hypervisor/testing/a-definition.ts';
import { formatNodeName } from '#node/hypervisor/qemu/arguments/block-nodes.ts';
import { deviceParts } from '#node/hypervisor/qemu/devices/device-parts.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { Hotplug } from '#node/hypervisor/qemu/devices/hotplug.ts';
import {
  DeviceNotFound,
  NO_ANSWER,
  openScriptedMonitor,
  type Command,
} from '#node/hypervisor/qemu/testing/scripted-monitor.ts';
import { SimulatedBlocks } from '#node/hypervisor/qemu/testing/simulated-blocks.ts';

const DISK = aDisk('late', 4, { path: '/disks/late', format: 'raw' });
const NIC: InterfaceDevice = {
  type: 'interface',
  id: 'nic-late',
  name: 'late',
  model: 'virtio',
  macAddress: '02:00:00:00:00:99',
  backend: { type: 'user' },
  address: { ...DISK.address, bus: '0x05' },
};

class SimulatedQemu extends SimulatedBlocks {
  readonly netdevs = new Set<string>();
  readonly devices: Set<string>;
  /** Reasons by refused command; undefined for a command that is not answered. */
  readonly refused = new Map<string, string | undefined>();

  constructor(devices: Iterable<string>) {
    super();
    this.devices = new Set(devices);
  }

  override answer(command: Command): unknown {
    const { execute, arguments: args = {} } = command;
    const refusal = this.refused.get(execute);
    if (refusal !== undefined) return new Error(refusal);
    if (this.refused.has(execute)) return NO_ANSWER;
    switch (execute) {
      case 'qom-list':
        return [...this.devices].map((name) => ({ name, type: 'child<some-device>' }));
      case 'netdev_add':
        this.netdevs.add(String(args['id']));
        return {};
      case 'netdev_del':
        return this.netdevs.delete(String(args['id'])) ? {} : new DeviceNotFound('not found');
      case 'device_add':
        this.devices.add(String(args['id']));
        return {};
      case 'device_del':
        return this.devices.has(String(args['id'])) ? {} : new DeviceNotFound('not found');
      default:
        return super.answer(command);
    }
  }

  get left(): unknown {
    return [[...this.nodes], [...this.netdevs]];
  }
}

const plain = aDefinition();

async function scene(definition: DomainDefinition = plain) {
  const clock = new FakeClock();
  const qemu = new SimulatedQemu(definition.devices.map(({ id }) => id));
  const qmp = await openScriptedMonitor(clock, (command) => qemu.answer(command));
  const state = { record: definition, changes: 0, reconciles: 0, unwritable: false };
  const hotplug = new Hotplug({
    parts: deviceParts({
      ...{ domainId: 'a-uid', user: undefined },
      files: ownUserAccess,
    }),
    definition: () => state.record,
    write: async (next) => {
      state.record = next;
      if (state.unwritable) throw new Error('no space left');
    },
    withQmp: (_verb, work) => work(qmp),
    onChange: () => void state.changes++,
    reconcileSoon: () => void state.reconciles++,
  });
  const releaseDevice = (id: string) => {
    qemu.devices.delete(id);
    hotplug.onEvent({ name: 'DEVICE_DELETED', data: { device: id, path: `/machine/peripheral/${id}` } });
  };
  return { clock, qemu, hotplug, state, releaseDevice };
}

for (const [device, command] of [
  [DISK, 'blockdev-add'],
  [DISK, 'device_add'],
  [NIC, 'netdev_add'],
  [NIC, 'device_add'],
] as const) {
  test(`a ${device.type} that cannot be plugged in leaves nothing behind: ${command}`, async () => {
    const { qemu, hotplug, state } = await scene();
    qemu.refused.set(command, 'injected refusal');

    await assert.rejects(hotplug.plug(device), /injected refusal/);

    assert.deepEqual([qemu.left, state.record.devices, state.changes], [[[], []], plain.devices, 0]);
    qemu.refused.clear();
    await hotplug.plug(device);
    assert.deepEqual(hotplug.inspection.definition.devices.at(-1), device);
    assert.equal(hotplug.events, 1);
  });
}

test('does not plug a device that cannot be recorded', async () => {
  const { qemu, hotplug, state } = await scene();
  state.unwritable = true;
  await assert.rejects(hotplug.plug(DISK), /no space left/);
  assert.deepEqual([qemu.left, state.record.devices], [[[], []], plain.devices]);
});

test('reports a plug with an unknown outcome once QEMU has the device', async () => {
  const { clock, qemu, hotplug, state } = await scene();
  qemu.refused.set('device_add', undefined);
  const plugged = assert.rejects(hotplug.plug(DISK), /did not answer/);
  await clock.advance(10_000);
  await plugged;

  assert.equal(state.reconciles, 1);
  assert.ok(
    state.record.devices.some(({ id }) => id === DISK.id),
    'the next process must know the device',
  );
  assert.deepEqual(hotplug.inspection.definition.devices, plain.devices);

  qemu.devices.add(DISK.id);
  await hotplug.reconcile();
  assert.deepEqual(hotplug.inspection.definition.devices.at(-1), DISK);
  assert.equal(state.changes, 1);
});

test('repeats a plug with an unknown outcome that QEMU did not execute', async () => {
  const { clock, qemu, hotplug } = await scene();
  qemu.refused.set('device_add', undefined);
  const plugged = assert.rejects(hotplug.plug(DISK), /did not answer/);
  await clock.advance(10_000);
  await plugged;
  qemu.refused.clear();
  assert.ok(qemu.nodes.has(formatNodeName(DISK.id)));

  await hotplug.plug(DISK);

  assert.deepEqual(hotplug.inspection.definition.devices.at(-1), DISK);
  assert.ok(qemu.devices.has(DISK.id));
});

for (const device of [DISK, NIC]) {
  test(`removes the parts of a ${device.type} that a killed process left without a device`, async () => {
    const { qemu, hotplug, state } = await scene({ ...plain, devices: [...plain.devices, device] });
    qemu.devices.delete(device.id);
    if (device === DISK) qemu.nodes.add(formatNodeName(DISK.id));
    else qemu.netdevs.add('net-late');

    await hotplug.reconcile();

    assert.deepEqual([qemu.left, state.record.devices, state.changes], [[[], []], plain.devices, 1]);
    await hotplug.reconcile();
    assert.equal(state.changes, 1, 'listeners are not called without a change');
  });

  test(`removes a ${device.type} and its parts when the guest releases it`, async () => {
    const { qemu, hotplug, state, releaseDevice } = await scene();
    await hotplug.plug(device);
    await hotplug.unplug(device.id);
    assert.deepEqual(hotplug.inspection.unplugging, [device.id]);
    assert.equal(state.changes, 1);

    releaseDevice(device.id);
    assert.equal(state.reconciles, 1);
    await hotplug.reconcile();

    assert.deepEqual([qemu.left, state.record.devices], [[[], []], plain.devices]);
    assert.deepEqual([hotplug.inspection.unplugging, hotplug.events, state.changes], [[], 2, 2]);
  });
}

test('keeps a device that the guest does not release, which can be requested again', async () => {
  const { qemu, hotplug, state } = await scene();
  await hotplug.plug(DISK);
  await hotplug.unplug(DISK.id);
  qemu.refused.set('device_del', `Device ${DISK.id} is already in the process of unplug`);
  await hotplug.unplug(DISK.id);
  assert.deepEqual(hotplug.inspection.unplugging, [DISK.id]);

  hotplug.onEvent({ name: 'DEVICE_UNPLUG_GUEST_ERROR', data: { device: DISK.id, path: '' } });

  assert.deepEqual(hotplug.inspection.unplugging, []);
  assert.deepEqual(hotplug.inspection.definition.devices.at(-1), DISK);
  assert.deepEqual([hotplug.events, state.changes], [2, 2]);
});

test('drops a device that QEMU no longer has', async () => {
  const { qemu, hotplug, state } = await scene();
  await hotplug.plug(DISK);
  qemu.devices.delete(DISK.id);

  await hotplug.unplug(DISK.id);

  assert.deepEqual([qemu.left, state.record.devices, hotplug.inspection.unplugging], [[[], []], plain.devices, []]);
});

test('keeps a device in the record until QEMU has closed its medium', async () => {
  const { qemu, hotplug, state, releaseDevice } = await scene();
  await hotplug.plug(DISK);
  await hotplug.unplug(DISK.id);
  releaseDevice(DISK.id);
  qemu.refused.set('blockdev-del', 'Node is in use');
  await assert.rejects(hotplug.reconcile(), /in use/);
  assert.deepEqual(state.record.devices.at(-1), DISK);

  qemu.refused.clear();
  await hotplug.reconcile();
  assert.deepEqual([qemu.left, state.record.devices], [[[], []], plain.devices]);
});

test('removes other devices although QEMU has not closed a medium', async () => {
  const { qemu, hotplug, state, releaseDevice } = await scene();
  await hotplug.plug(DISK);
  await hotplug.plug({ ...NIC, address: { ...DISK.address, bus: '0x06' } });
  for (const { id } of [DISK, NIC]) releaseDevice(id);
  qemu.refused.set('blockdev-del', 'Node is in use');

  await assert.rejects(hotplug.reconcile(), /in use/);

  assert.deepEqual([state.record.devices.at(-1), [...qemu.netdevs]], [DISK, []]);
});

const refusals: Record<string, { desc: string; permanent: boolean; want?: RegExp; disk?: string }> = {
  'no such port': { desc: "Bus 'rp9' not found", permanent: true },
  'a port in use': { desc: 'PCI: slot 0 function 0 not available for x, in use by y,id=z', permanent: true },
  'a unit in use': { desc: "lun already used by 'disk-a'", permanent: true },
  'a bus without hotplug': { desc: "Bus 'ide.0' does not support hotplugging", permanent: true },
  'a LUN that is not a SCSI device': {
    desc: 'cannot get SG_IO version number: Invalid argument',
    permanent: true,
    want: /a LUN needs a SCSI device of this node/,
  },
  'an image that another process uses': { desc: 'Failed to get "write" lock', permanent: false, disk: 'inUse' },
};

for (const [name, { desc, permanent, want = /refused/, disk }] of Object.entries(refusals)) {
  test(`knows whether a retry is useful: ${name}`, async () => {
    const { qemu, hotplug } = await scene();
    qemu.refused.set('device_add', desc);
    await assert.rejects(hotplug.plug(DISK), (error) => {
      assert.ok(error instanceof HypervisorError);
      assert.match(error.message, want);
      assert.deepEqual([error.permanent, error.disk?.is], [permanent, disk]);
      return true;
    });
  });
}

test('reports events of other known devices only', async () => {
  const { hotplug, state } = await scene();
  hotplug.onEvent({ name: 'DEVICE_TRAY_MOVED', data: { device: '', id: 'disk-tray', 'tray-open': true } });
  hotplug.onEvent({ name: 'DEVICE_DELETED', data: { path: '/machine/peripheral/rng0/virtio-backend' } });
  hotplug.onEvent({ name: 'RESET', data: { device: 'disk-tray' } });
  assert.deepEqual([hotplug.events, state.changes], [1, 1]);
});

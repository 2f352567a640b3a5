/**
 * A random walk over everything that could move a device: disks and NICs are added, removed, plugged, unplugged and
 * reordered, for this run or permanently, cold or hot, with restarts, crashes, guests that do not release devices, and
 * losses of agents and the server. The walk remembers the address at which each device was first seen. While the VM has
 * the device, no guest sees it at another address, and no two devices have the same address.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DeviceAddress } from '#api/devices/learned-device.ts';
import type { Device } from '#node/hardware/domain-definition.ts';
import { createSeededRandom, type SeededRandom } from '#test/support/seeded-random.ts';
import type { TestResponse, Loose } from '#test/support/test-api.ts';
import { aNetworkDefinition } from '#test/support/secondary-networks.ts';
import { aClaim, aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const OPERATIONS = 1000;
const VM = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines/walker';
const SUBRESOURCES = '/apis/subresources.kubevirt.io/v1/namespaces/default';
/** Longer than an agent waits before it asks a guest again to release a device. */
const RETRY_WAIT_MS = 35_000;

const HOT_DISKS = ['h0', 'h1', 'h2', 'h3', 'h4', 'h5'];
const COLD_DISKS = ['c0', 'c1', 'c2'];
const NICS = ['n0', 'n1', 'n2', 'n3'];
/** A disk always has the same bus: on another bus it gets another address. */
const BUSES: Readonly<Record<string, string>> = { c0: 'virtio', c1: 'sata', c2: 'scsi' };
const busOf = (name: string) => BUSES[name] ?? (HOT_DISKS.indexOf(name) % 2 === 0 ? 'scsi' : 'virtio');

interface Walk {
  readonly plane: VmPlane;
  readonly random: SeededRandom;
  /** The first address of each device since the VM has it. */
  readonly seen: Map<string, string>;
  readonly log: string[];
}

type Step = (walk: Walk) => Promise<string>;

const template = (vm: Loose): Loose => vm.spec.template.spec;

/** Returns the outcome of the request, which must not be an internal error. */
function outcomeOf({ status, text }: TestResponse): string {
  assert.ok(status < 500, text);
  return status < 300 ? 'done' : `refused ${status}`;
}

/** Changes the template and writes the VM. */
async function edit({ plane }: Walk, change: (spec: Loose) => void): Promise<string> {
  const vm = await plane.get('VirtualMachine', 'walker');
  change(template(vm));
  return outcomeOf(await plane.call('PUT', VM, { body: vm }));
}

async function callVerb({ plane }: Walk, resource: string, name: string, body: Loose): Promise<string> {
  return outcomeOf(await plane.call('PUT', `${SUBRESOURCES}/${resource}/walker/${name}`, { body }));
}

/** Forgets the address of a device that was attached or detached: it may get another one. */
function forgetAddress({ seen }: Walk, id: string, answer: string): string {
  if (answer === 'done') seen.delete(id);
  return answer;
}

const hotVolume = (name: string) => ({ persistentVolumeClaim: { claimName: name, hotpluggable: true } });
const without = (list: Loose[] = [], name: string) => list.filter((item) => item.name !== name);

const steps: Readonly<Record<string, Step>> = {
  async addVolume(walk) {
    const name = walk.random.pick(HOT_DISKS);
    const bus = busOf(name);
    const resource = walk.random.pick(['virtualmachines', 'virtualmachineinstances']);
    const body = { name, disk: { disk: { bus } }, volumeSource: hotVolume(name) };
    return `${resource} addvolume ${name} on ${bus}: ${forgetAddress(walk, `disk-${name}`, await callVerb(walk, resource, 'addvolume', body))}`;
  },
  async removeVolume(walk) {
    const name = walk.random.pick(HOT_DISKS);
    const resource = walk.random.pick(['virtualmachines', 'virtualmachineinstances']);
    return `${resource} removevolume ${name}: ${forgetAddress(walk, `disk-${name}`, await callVerb(walk, resource, 'removevolume', { name }))}`;
  },
  async coldDisk(walk) {
    const name = walk.random.pick(COLD_DISKS);
    const bus = busOf(name);
    const answer = await edit(walk, (spec) => {
      const { devices } = spec.domain;
      const has = (devices.disks ?? []).some((disk: Loose) => disk.name === name);
      devices.disks = without(devices.disks, name);
      spec.volumes = without(spec.volumes, name);
      if (has) return;
      devices.disks.push({ name, disk: { bus } });
      spec.volumes.push({ name, emptyDisk: { capacity: '1Mi' } });
    });
    return `cold ${name} on ${bus} is added or removed: ${forgetAddress(walk, `disk-${name}`, answer)}`;
  },
  async nic(walk) {
    const name = walk.random.pick(NICS);
    const want = walk.random.pick(['up', 'absent', 'gone']);
    let wasThere = false;
    const answer = await edit(walk, (spec) => {
      wasThere = (spec.domain.devices.interfaces ?? []).some((nic: Loose) => nic.name === name);
      const { devices } = spec.domain;
      const others = without(devices.interfaces, name);
      if (want === 'gone' && others.length === 0) return;
      const kept = (devices.interfaces ?? []).find((nic: Loose) => nic.name === name) ?? { name, bridge: {} };
      const nic = { ...kept, state: want };
      devices.interfaces = want === 'gone' ? others : [...others, nic];
      const networks = without(spec.networks, name);
      spec.networks = want === 'gone' ? networks : [...networks, { name, multus: { networkName: `br-${name}` } }];
    });
    return `NIC ${name} ${want}: ${want === 'gone' || !wasThere ? forgetAddress(walk, `nic-${name}`, answer) : answer}`;
  },
  async reorder(walk) {
    const answer = await edit(walk, (spec) => {
      const { devices } = spec.domain;
      for (const list of [devices.disks, devices.interfaces, spec.volumes, spec.networks]) list?.reverse();
    });
    return `reorder: ${answer}`;
  },
  async machineType(walk) {
    const type = walk.random.pick(['pc-q35-7.2', 'pc-q35-6.2', 'q35']);
    return `${type}: ${await edit(walk, (spec) => Object.assign(spec.domain, { machine: { type } }))}`;
  },
  restart: async ({ plane }) => `restart: ${await plane.beginVerb('restart', 'walker')}`,
  async crash({ plane }) {
    const [guest] = plane.guests('walker');
    guest?.crash('died');
    return 'the guest crashes';
  },
  async hold({ plane }) {
    plane.guests('walker')[0]?.holdDevices();
    return 'the guest does not release devices';
  },
  async releaseDevices({ plane }) {
    plane.guests('walker')[0]?.releaseDevices();
    return 'the guest releases devices';
  },
  async agent({ plane, random }) {
    const { name } = random.pick(plane.nodes);
    await plane.restartAgent(name);
    return `the agent of ${name} restarts`;
  },
  async server({ plane, random }) {
    const agents = random.pick([true, false]);
    await plane.restartServer({ agents });
    return `the server restarts${agents ? ' with all agents' : ''}`;
  },
};

/** Names of the steps, weighted: expensive steps are rare. */
const DICE = Object.keys(steps).flatMap((name) =>
  Array<string>(name === 'server' ? 1 : name === 'agent' || name === 'crash' || name === 'machineType' ? 2 : 6).fill(
    name,
  ),
);

function placeOf({ type, address, ...device }: Device): string | undefined {
  if (address === undefined) return undefined;
  const on = type === 'disk' && 'bus' in device && device.bus !== 'virtio' ? `${device.bus} ` : '';
  return on + textOf(address);
}

const textOf = (address: DeviceAddress) =>
  Object.entries(address)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${value}`)
    .join(',');

const isDiskOrNic = ({ type }: Device) => type === 'disk' || type === 'interface';

/** Asserts, on a settled plane, that each device has its first address, that no two share one, and that the record agrees. */
async function checkAddresses({ plane, seen }: Walk): Promise<void> {
  const spec = template(await plane.get('VirtualMachine', 'walker'));
  const [guest] = plane.guests('walker');
  const devices = guest?.definition.devices ?? [];
  const places = devices.flatMap((device) => placeOf(device) ?? []);
  assert.equal(new Set(places).size, places.length, `two devices in one place: ${places.sort().join(' ')}`);

  for (const device of devices.filter(isDiskOrNic)) {
    const place = placeOf(device)!;
    const first = seen.get(device.id);
    if (first === undefined) seen.set(device.id, place);
    else assert.equal(place, first, `${device.id} has moved`);
  }
  const listed = new Set<string>([
    ...(spec.domain.devices.disks ?? []).map(({ name }: Loose) => `disk-${name}`),
    ...(spec.domain.devices.interfaces ?? []).map(({ name }: Loose) => `nic-${name}`),
  ]);
  // A device that neither the VM nor the guest has may get another address next time.
  const wanted = new Set([...listed, ...devices.map(({ id }) => id)]);
  for (const id of [...seen.keys()]) if (!wanted.has(id)) seen.delete(id);

  const absent = new Set(
    (spec.domain.devices.interfaces ?? [])
      .filter(({ state }: Loose) => state === 'absent')
      .map(({ name }: Loose) => `nic-${name}`),
  );
  const { status } = await plane.get('VirtualMachineIdentity', 'walker');
  const rows = new Map((status.devices as Loose[]).map((row) => [row.id, row]));
  const vmi = await plane.find('VirtualMachineInstance', 'walker');
  if (guest === undefined || vmi?.status?.phase !== 'Running') return;
  assert.equal(status.deviceHash, vmi.status.deviceHash);
  for (const { id, type, address } of devices) {
    assert.deepEqual(rows.get(id)?.address, address, `the row of ${id}`);
    // A detached device that is being unplugged: the record may still say that it was absent before.
    if (type === 'interface' && !listed.has(id)) continue;
    // The record says that the device is unplugged before the guest is asked to release it.
    assert.equal(rows.get(id)?.plugged === false, absent.has(id), `${id} is in the guest`);
  }
}

test(`${OPERATIONS} random changes move no device`, async (t) => {
  const random = createSeededRandom(t);
  const plane = await startVmPlane(t);
  for (const name of NICS) await plane.apply(aNetworkDefinition(`br-${name}`));
  for (const name of HOT_DISKS) await plane.apply(aClaim(name, { storageClassName: 'shared' }));
  const first = { domain: { devices: { interfaces: [{ name: 'n0', bridge: {} }] } } };
  const networks = [{ name: 'n0', multus: { networkName: 'br-n0' } }];
  await plane.apply(aVm('walker', { runStrategy: 'Always' }, { ...first, networks }));
  const walk: Walk = { plane, random, seen: new Map(), log: [] };
  try {
    for (let at = 0; at < OPERATIONS; at++) {
      const step = steps[random.pick(DICE)]!;
      walk.log.push(await step(walk));
      // Most steps begin before the previous one is complete.
      if (random.between(0, 3) > 0) continue;
      await plane.settle();
      await checkAddresses(walk);
    }
    plane.guests('walker')[0]?.releaseDevices();
    await plane.advance(RETRY_WAIT_MS * 12);
    await checkAddresses(walk);
    await plane.runVerb('restart', 'walker');
    await plane.advance(RETRY_WAIT_MS * 12);
    await checkAddresses(walk);
    assert.ok(walk.seen.size > 0);
  } catch (error) {
    t.diagnostic(`last steps:\n${walk.log.slice(-25).join('\n')}`);
    throw error;
  }
});

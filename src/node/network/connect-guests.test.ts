import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '#lib/log.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import type { DomainDefinition, InterfaceDevice } from '#node/hardware/domain-definition.ts';
import { FakeHost } from '#node/hypervisor/fake/fake-host.ts';
import { createFakeHypervisor, type FakeHypervisor } from '#node/hypervisor/fake/fake-hypervisor.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { IncomingMigration } from '#node/hypervisor/migration.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';
import { moveTo, POINTS, type Move, type Point } from '#node/hypervisor/testing/move.ts';
import { connectGuests } from '#node/network/connect-guests.ts';
import { createFakeNetworks, FakeNetworkHost } from '#node/network/fake/fake-networks.ts';

const INCOMING: IncomingMigration = {
  ...{ uid: 'm', peer: 'here', startedAtMs: 0, paused: false, disks: [] },
  transport: { type: 'local' },
};
const POD = { namespace: 'default', name: 'virt-launcher-guest', uid: 'pod-1' };

function nicOn(podInterface: string, address: string): InterfaceDevice {
  return {
    type: 'interface',
    id: `nic-${podInterface}`,
    name: podInterface,
    model: 'virtio',
    macAddress: '52:54:00:00:00:01',
    backend: {
      type: 'pod',
      tap: `tap-${podInterface}`,
      attachment: { podInterface, network: { type: 'default' }, binding: 'masquerade', addresses: [address] },
    },
    address: { type: 'pci', domain: '0x0000', bus: '0x06', slot: '0x00', function: '0x0' },
  };
}

function aConnectedGuest(): DomainDefinition {
  const definition = aDefinition();
  const others = definition.devices.filter(({ type }) => type !== 'interface');
  return {
    ...definition,
    devices: [...others, nicOn('eth0', '10.244.0.5/16')],
    network: { pod: POD, hostname: 'guest', searchDomains: [] },
  };
}

/** A machine whose guests and networks outlive the hypervisor. */
class Machine {
  readonly clock = new FakeClock();
  readonly host = new FakeHost();
  readonly networks = new FakeNetworkHost();

  async open(): Promise<FakeHypervisor> {
    const networks = createFakeNetworks({ host: this.networks });
    const inner = createFakeHypervisor({ clock: this.clock, host: this.host });
    const hypervisor = connectGuests(inner, { networks, userOf: () => undefined, log: silentLog });
    await hypervisor.adopt();
    return hypervisor;
  }

  /** active, silent or absent. */
  stateOf(id: string): string {
    const network = this.networks.states.get(id);
    return network === undefined ? 'absent' : network.isSilent ? 'silent' : 'active';
  }
}

test('a guest is connected before it starts, and disconnected when it is removed', async () => {
  const machine = new Machine();
  const hypervisor = await machine.open();
  const definition = aConnectedGuest();
  await hypervisor.create(definition);
  assert.equal(machine.stateOf(definition.id), 'active');
  assert.deepEqual(machine.networks.states.get(definition.id)?.interfaces, [
    { podInterface: 'eth0', addresses: ['10.244.0.5'], mtu: 1450 },
  ]);
  await hypervisor.create(definition);
  await hypervisor.destroy(definition.id);
  await hypervisor.remove(definition.id);
  assert.equal(machine.stateOf(definition.id), 'absent');
});

test('a guest of an earlier version has no networks', async () => {
  const machine = new Machine();
  const hypervisor = await machine.open();
  const definition = aDefinition();
  await hypervisor.create(definition);
  assert.equal(machine.stateOf(definition.id), 'absent');
});

test('a start that fails leaves no network behind', async () => {
  const machine = new Machine();
  const hypervisor = await machine.open();
  const definition = aConnectedGuest();
  hypervisor.failNextCreate(new HypervisorError('no memory'));
  await assert.rejects(hypervisor.create(definition), /no memory/);
  assert.equal(machine.stateOf(definition.id), 'absent');
});

test('a guest that has ended is silent: its VM may start on another node before it is removed', async () => {
  const machine = new Machine();
  const hypervisor = await machine.open();
  const definition = aConnectedGuest();
  await hypervisor.create(definition);
  await hypervisor.destroy(definition.id);
  await hypervisor.close();
  assert.equal(machine.stateOf(definition.id), 'silent');
});

test('a guest that ended while no agent ran is silent', async () => {
  const machine = new Machine();
  const hypervisor = await machine.open();
  const { id, ...others } = aConnectedGuest();
  await hypervisor.create({ id, ...others });
  await hypervisor.destroy(id);
  await hypervisor.close();
  const network = machine.networks.states.get(id);
  assert.ok(network);
  machine.networks.states.set(id, { ...network, isSilent: false });
  await (await machine.open()).close();
  assert.equal(machine.stateOf(id), 'silent');
});

test('a guest that runs keeps its network if it is received once more', async () => {
  const machine = new Machine();
  const hypervisor = await machine.open();
  const definition = aConnectedGuest();
  await hypervisor.create(definition);
  await assert.rejects(hypervisor.receive(definition, INCOMING, {}), HypervisorError);
  assert.equal(machine.stateOf(definition.id), 'active');
});

test('a target that has not stored the guest yet stays silent if the commit comes too early', async () => {
  const [source, target] = [new Machine(), new Machine()];
  const move = await beginConnectedMove(source, target);
  await assert.rejects(move.target.commit(move.id), HypervisorError);
  assert.deepEqual([source.stateOf(move.id), target.stateOf(move.id)], ['active', 'silent']);
});

test('what is left of a guest that never started is removed by the next process', async () => {
  const machine = new Machine();
  machine.networks.states.set('left-over', { namespace: 'x', interfaces: [], isSilent: false });
  await machine.open();
  assert.equal(machine.stateOf('left-over'), 'absent');
});

test('an interface is connected when it is plugged in, and disconnected when the guest has released it', async () => {
  const machine = new Machine();
  const hypervisor = await machine.open();
  const definition = aConnectedGuest();
  const { id } = definition;
  await hypervisor.create(definition);
  const interfaces = () => machine.networks.states.get(id)?.interfaces.map(({ podInterface }) => podInterface);
  const nic = nicOn('pod1', '10.244.0.6/16');
  await hypervisor.plug(id, { ...nic, address: { ...nic.address, bus: '0x07' } });
  assert.deepEqual(interfaces(), ['eth0', 'pod1']);
  await hypervisor.unplug(id, nic.id);
  for (let i = 0; i < 10; i++) await machine.clock.advance(1000);
  assert.deepEqual(interfaces(), ['eth0']);
});

/** The states of both sides when a migration has reached a point, and after the agents were killed there. */
const EXPECTED: Readonly<Record<Point, readonly [source: string, target: string]>> = {
  received: ['active', 'silent'],
  sent: ['silent', 'silent'],
  switched: ['silent', 'silent'],
  stored: ['silent', 'silent'],
  migrated: ['silent', 'silent'],
  committed: ['silent', 'active'],
  left: ['silent', 'active'],
};

async function beginConnectedMove(source: Machine, target: Machine): Promise<Move> {
  const [from, to] = [await source.open(), await target.open()];
  const definition = aConnectedGuest();
  const { id } = definition;
  await from.create(definition);
  const endpoint = await to.receive(definition, INCOMING, {});
  const outgoing = { uid: 'm', peer: 'there', endpoint, disks: [], bytesPerSecond: 0, autoConverge: false };
  return { id, uid: 'm', definition, source: from, target: to, outgoing, sent: {}, at: 'received' };
}

for (const point of POINTS) {
  test(`at most one side answers when a migration has ${point}, also after the agents were killed there`, async () => {
    const [source, target] = [new Machine(), new Machine()];
    const both: string[] = [];
    let id = '';
    const check = () => source.stateOf(id) === 'active' && target.stateOf(id) === 'active' && both.push('both');
    source.networks.onChange = check;
    target.networks.onChange = check;
    const move = await beginConnectedMove(source, target);
    ({ id } = move);
    await moveTo(move, point);
    assert.deepEqual([source.stateOf(id), target.stateOf(id)], EXPECTED[point]);
    await source.open();
    await target.open();
    assert.deepEqual([source.stateOf(id), target.stateOf(id)], EXPECTED[point]);
    assert.deepEqual(both, []);
  });
}

for (const point of ['received', 'sent', 'switched', 'stored'] as const) {
  test(`the source answers again after a migration that was aborted when it had ${point}`, async () => {
    const [source, target] = [new Machine(), new Machine()];
    const move = await beginConnectedMove(source, target);
    await moveTo(move, point);
    const reopened = await source.open();
    await reopened.abortMigration(move.id);
    assert.equal(source.stateOf(move.id), 'active');
    await move.target.destroy(move.id);
    await move.target.remove(move.id);
    assert.equal(target.stateOf(move.id), 'absent');
  });
}

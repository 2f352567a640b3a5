/** A guest on a bridge, played by a listener on an address of the loopback of this machine. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { systemClock } from '#lib/clock.ts';
import type { DomainDefinition } from '#node/definition/domain-definition.ts';
import { GuestReach } from '#node/guest-ports/reach-guest.ts';
import { HypervisorError, type DomainState } from '#node/hypervisor/hypervisor.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';

const [NODE, GUEST, MAC] = ['127.0.0.1', '127.0.0.2', '02:00:00:00:00:01'];

function bridged(): DomainDefinition {
  const definition = aDefinition();
  const devices = definition.devices.map((device) =>
    device.type === 'interface' ? { ...device, backend: { type: 'bridge' as const, bridge: 'br0' } } : device,
  );
  return { ...definition, devices };
}

async function scene(t: TestContext, { mac = MAC, definition = bridged(), addresses = [GUEST] } = {}) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket.on('error', () => undefined)));
  server.listen(0, GUEST);
  await once(server, 'listening');
  const guest: { current: DomainState } = { current: { state: 'running' } };
  let changed: (id: string) => void = () => undefined;
  const forwarded: number[] = [];
  const reach = new GuestReach({
    hypervisor: {
      get: (id) => ({ id, name: 'default/guest', machine: 'q35', startedAtMs: 0, deviceEvents: 0, ...guest }),
      inspect: () => ({ definition, leaving: [] }),
      onChange(listener) {
        changed = listener;
        return () => undefined;
      },
      async openPort(_id, { port }) {
        forwarded.push(port);
        return new PassThrough();
      },
    },
    agents: { get: () => ({ os: {}, interfaces: [{ mac: MAC, addresses }] }) },
    clock: systemClock,
    networks: () => ({ br0: [{ address: NODE, netmask: '255.0.0.0' }] }),
    neighbours: async () => `${GUEST}  0x1  0x2  ${mac}  *  br0\n`,
  });
  t.after(() => {
    reach.stop();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const end = (current: DomainState) => {
    guest.current = current;
    changed('a');
  };
  const { port } = server.address() as AddressInfo;
  return { reach, forwarded, sockets, end, port: { port, protocol: 'tcp' as const }, server };
}

test('a guest on a bridge is spoken to at its address, until it ends', async (t) => {
  const { reach, port, server, end } = await scene(t);
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const stream = await reach.openPort('a', port);
  const [theirs] = await accepted;
  assert.equal(theirs.remoteAddress, NODE);
  theirs.write('hello');
  assert.equal(String((await once(stream, 'data'))[0]), 'hello');
  const closed = once(stream, 'close');
  end({ state: 'paused' });
  assert.equal(stream.destroyed, false);
  end({ state: 'ended', how: 'shutdown' });
  await closed;
});

test('where somebody else has the address, nothing is said to them', async (t) => {
  const { reach, port } = await scene(t, { mac: '02:00:00:00:00:ff' });
  await assert.rejects(
    reach.openPort('a', port),
    /its address 127\.0\.0\.2 is another machine's \(02:00:00:00:00:ff\)/,
  );
});

test('a guest that refuses is told as such', async (t) => {
  const { reach, server, port } = await scene(t);
  server.close();
  await once(server, 'close');
  await assert.rejects(reach.openPort('a', port), /the guest refused the connection to port \d+/);
});

test('who waits no longer is not waited for', async (t) => {
  const { reach, port } = await scene(t);
  await assert.rejects(reach.openPort('a', port, { signal: AbortSignal.abort() }), /nobody waits for it any more/);
});

const isPermanent = (pattern: RegExp) => (error: unknown) =>
  error instanceof HypervisorError && error.permanent && pattern.test(error.message);

test('what no way leads to says what would help, and that it is no use to try again', async (t) => {
  const { reach, port } = await scene(t, { addresses: [] });
  await assert.rejects(reach.openPort('a', port), isPermanent(/domain "default\/guest": .* run a guest agent/));
});

test('datagrams go through QEMU only', async (t) => {
  const { reach } = await scene(t);
  const udp = { port: 53, protocol: 'udp' as const };
  await assert.rejects(reach.openPort('a', udp), isPermanent(/only through an interface in user mode \(masquerade\)/));
});

test('a network inside QEMU is left to QEMU', async (t) => {
  const { reach, forwarded } = await scene(t, { definition: aDefinition() });
  (await reach.openPort('a', { port: 53, protocol: 'udp' })).destroy();
  assert.deepEqual(forwarded, [53]);
});

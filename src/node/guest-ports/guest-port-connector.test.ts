/** A guest on a bridge, simulated by a listener on a loopback address. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { systemClock } from '#lib/clock.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { GuestPortConnector } from '#node/guest-ports/guest-port-connector.ts';
import { HypervisorError, type DomainState } from '#node/hypervisor/hypervisor.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';

const [NODE, GUEST, MAC] = ['127.0.0.1', '127.0.0.2', '02:00:00:00:00:01'];

function aBridgedGuest(): DomainDefinition {
  const definition = aDefinition();
  const devices = definition.devices.map((device) =>
    device.type === 'interface' ? { ...device, backend: { type: 'bridge' as const, bridge: 'br0' } } : device,
  );
  return { ...definition, devices };
}

async function scene(t: TestContext, { mac = MAC, definition = aBridgedGuest(), addresses = [GUEST] } = {}) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket.on('error', () => undefined)));
  server.listen(0, GUEST);
  await once(server, 'listening');
  const guest: { current: DomainState } = { current: { state: 'running' } };
  let changed: (id: string) => void = () => undefined;
  const forwarded: number[] = [];
  const connector = new GuestPortConnector({
    hypervisor: {
      get: (id) => ({ id, name: 'default/guest', machine: 'q35', startedAtMs: 0, deviceEvents: 0, ...guest }),
      inspect: () => ({ definition, unplugging: [] }),
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
    connector.stop();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const end = (current: DomainState) => {
    guest.current = current;
    changed('a');
  };
  const { port } = server.address() as AddressInfo;
  return { connector, forwarded, sockets, end, port: { port, protocol: 'tcp' as const }, server };
}

test('connects to a guest on a bridge until the guest ends', async (t) => {
  const { connector, port, server, end } = await scene(t);
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const stream = await connector.openPort('a', port);
  const [peer] = await accepted;
  assert.equal(peer.remoteAddress, NODE);
  peer.write('hello');
  assert.equal(String((await once(stream, 'data'))[0]), 'hello');
  const closed = once(stream, 'close');
  end({ state: 'paused' });
  assert.equal(stream.destroyed, false);
  end({ state: 'ended', how: 'shutdown' });
  await closed;
});

test('refuses to connect if another machine has the address', async (t) => {
  const { connector, port } = await scene(t, { mac: '02:00:00:00:00:ff' });
  await assert.rejects(
    connector.openPort('a', port),
    /its address 127\.0\.0\.2 belongs to another machine \(02:00:00:00:00:ff\)/,
  );
});

test('reports that the guest refused the connection', async (t) => {
  const { connector, server, port } = await scene(t);
  server.close();
  await once(server, 'close');
  await assert.rejects(connector.openPort('a', port), /the guest refused the connection to port \d+/);
});

test('rejects when the request is cancelled', async (t) => {
  const { connector, port } = await scene(t);
  await assert.rejects(connector.openPort('a', port, { signal: AbortSignal.abort() }), /the request was cancelled/);
});

const isPermanent = (pattern: RegExp) => (error: unknown) =>
  error instanceof HypervisorError && error.permanent && pattern.test(error.message);

test('fails permanently without a route, and says what would help', async (t) => {
  const { connector, port } = await scene(t, { addresses: [] });
  await assert.rejects(connector.openPort('a', port), isPermanent(/domain "default\/guest": .* run a guest agent/));
});

test('refuses UDP over a bridge', async (t) => {
  const { connector } = await scene(t);
  const udp = { port: 53, protocol: 'udp' as const };
  await assert.rejects(connector.openPort('a', udp), isPermanent(/UDP needs an interface in user mode \(masquerade\)/));
});

test('leaves an interface in user mode to QEMU', async (t) => {
  const { connector, forwarded } = await scene(t, { definition: aDefinition() });
  (await connector.openPort('a', { port: 53, protocol: 'udp' })).destroy();
  assert.deepEqual(forwarded, [53]);
});

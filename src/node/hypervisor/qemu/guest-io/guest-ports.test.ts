import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { systemClock } from '#lib/clock.ts';
import { GuestPorts } from '#node/hypervisor/qemu/guest-io/guest-ports.ts';
import { openScriptedMonitor } from '#node/hypervisor/qemu/testing/scripted-monitor.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';

/** A monitor that forwards to a port of this host, and reports connections in the given state. */
async function scene(t: TestContext, { state, left = false }: { state: string; left?: boolean }) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    if (state === 'refused') socket.destroy();
    else socket.write('hello\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const commands: string[] = [];
  let isForwarded = left;
  const row = (what: string) => `  TCP[${what}]  12  127.0.0.1 ${port}  10.0.2.15  8080  0  0\r\n`;
  const qmp = await openScriptedMonitor(systemClock, ({ arguments: args }) => {
    const line = String(args?.['command-line']);
    if (line.startsWith('hostfwd_')) commands.push(line);
    if (line.startsWith('hostfwd_add')) isForwarded = true;
    if (line.startsWith('hostfwd_remove')) isForwarded = false;
    if (line !== 'info usernet') return '';
    const rows = `${isForwarded ? row('HOST_FORWARD') : ''}${sockets.length > 0 && state !== 'refused' ? row(state) : ''}`;
    return `Hub -1 (net-default):\r\n${rows}`;
  });
  t.after(() => {
    qmp.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const definition = aDefinition();
  const ports = new GuestPorts({
    clock: systemClock,
    withQmp: (_verb, work) => work(qmp),
    definition: () => definition,
  });
  const removed = `hostfwd_remove net-default tcp:127.0.0.1:${port}`;
  return { ports, commands, removed };
}
const PORT = { port: 8080, protocol: 'tcp' as const };
const ADDED = 'hostfwd_add net-default tcp:127.0.0.1:0-:8080';

test('returns an accepted connection with its first data, and removes the forward', async (t) => {
  const { ports, commands, removed } = await scene(t, { state: 'ESTABLISHED' });
  const stream = await ports.open(PORT);
  assert.deepEqual(commands, [ADDED, removed]);
  const [data] = (await once(stream, 'data')) as [Buffer];
  assert.equal(data.toString(), 'hello\n');
  ports.close();
  await once(stream, 'close');
});

test('reports a refused connection, and removes the forward', async (t) => {
  const { ports, commands, removed } = await scene(t, { state: 'refused' });
  await assert.rejects(ports.open(PORT), /the guest refused the connection to port 8080/);
  assert.deepEqual(commands, [ADDED, removed]);
});

test('stops waiting for the guest after the timeout', async (t) => {
  const { ports, commands, removed } = await scene(t, { state: 'SYN_SENT' });
  await assert.rejects(ports.open(PORT, { timeoutMs: 120 }), /port 8080 did not answer within 120 ms/);
  assert.deepEqual(commands, [ADDED, removed]);
});

test('removes forwards that an earlier node agent left', async (t) => {
  const { ports, commands, removed } = await scene(t, { state: 'refused', left: true });
  await ports.reconcile();
  assert.deepEqual(commands, [removed]);
});

test('keeps forwards of this node agent', async (t) => {
  const { ports, commands, removed } = await scene(t, { state: 'SYN_SENT' });
  const opening = assert.rejects(ports.open(PORT, { timeoutMs: 500 }), /did not answer/);
  while (commands.length === 0) await new Promise((resolve) => setImmediate(resolve));
  await ports.reconcile();
  assert.deepEqual(commands, [ADDED]);
  await opening;
  assert.deepEqual(commands, [ADDED, removed]);
});

test('limits the number of connections', async (t) => {
  const { ports } = await scene(t, { state: 'SYN_SENT' });
  const ended = new AbortController();
  const opening = Array.from({ length: 257 }, () => ports.open(PORT, { signal: ended.signal }));
  await assert.rejects(opening.at(-1)!, /256 connections to the guest are open already/);
  ended.abort();
  for (const one of await Promise.allSettled(opening)) assert.equal(one.status, 'rejected');
});

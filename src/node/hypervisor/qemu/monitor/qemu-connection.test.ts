/** The connection to a QEMU, with a server that only greets, and `sleep` as the process. */
import assert from 'node:assert/strict';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { FakeClock } from '#client/testing/fake-clock.ts';
import { silentLog } from '#lib/log.ts';
import { DomainDir } from '#node/hypervisor/qemu/process/domain-dir.ts';
import { spawnDetached, type DetachedProcess } from '#node/hypervisor/qemu/process/process.ts';
import { QemuConnection } from '#node/hypervisor/qemu/monitor/qemu-connection.ts';
import { waitWithClock } from '#node/hypervisor/qemu/testing/wait-with-clock.ts';

interface Scene {
  readonly connection: QemuConnection;
  readonly qemu: DetachedProcess;
  readonly calls: { reconnects: number; exits: number };
  /** All connections so far; the last one is the current one. */
  readonly sockets: Socket[];
  /** Advances the clock until the condition holds. */
  until(isSo: () => boolean): Promise<void>;
}

async function scene(run: (scene: Scene) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'selfsame-connection-'));
  const dir = new DomainDir(root, 'a-uid');
  await dir.prepare(undefined);
  const clock = new FakeClock();
  const log = await open(join(root, 'log'), 'a');
  const options = { command: 'sleep', args: ['60'], cwd: root, user: undefined, logFd: log.fd };
  const qemu = await spawnDetached(options, clock);
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.write('{"QMP": {}}\n');
    socket.on('data', (bytes: Buffer) => {
      const { id } = JSON.parse(bytes.toString()) as { id: number };
      socket.write(`${JSON.stringify({ return: {}, id })}\n`);
    });
  });
  await new Promise<void>((resolve) => server.listen(join(dir.run, 'qmp.sock'), resolve));
  const calls = { reconnects: 0, exits: 0 };
  const connection = new QemuConnection({
    ...{ dir, qemu, clock, log: silentLog },
    onEvent: () => undefined,
    onReconnect: async () => void calls.reconnects++,
    onExit: async () => void calls.exits++,
  });
  const until = waitWithClock(clock);
  try {
    await run({ connection, qemu, calls, sockets, until });
  } finally {
    connection.close();
    await qemu.kill('SIGKILL');
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
    await log.close();
    await rm(root, { recursive: true });
  }
}

const timeout = 20_000;

test('reconnects to a QEMU that closed the connection and still runs', { timeout }, () =>
  scene(async ({ connection, calls, sockets, until }) => {
    await connection.connect({ timeoutMs: 1000 });
    assert.ok(connection.qmp !== undefined);
    for (const times of [1, 2]) {
      sockets.at(-1)?.destroy();
      await until(() => calls.reconnects === times);
      assert.ok(connection.qmp !== undefined);
    }
    assert.equal(calls.exits, 0);
  }),
);

test('does not reconnect to a QEMU that has exited', { timeout }, () =>
  scene(async ({ connection, qemu, calls, sockets, until }) => {
    await connection.connect({ timeoutMs: 1000 });
    await qemu.kill('SIGKILL');
    sockets.at(-1)?.destroy();
    await until(() => calls.exits === 1);
    assert.equal(connection.qmp, undefined);
    assert.equal(calls.reconnects, 0);
  }),
);

test('notices on connecting that QEMU has exited', { timeout }, () =>
  scene(async ({ connection, qemu, calls, until }) => {
    await qemu.kill('SIGKILL');
    assert.equal(await qemu.waitForExit(1000), true);
    await assert.rejects(connection.connect({ timeoutMs: 1000 }), /QEMU was killed by SIGKILL/);
    connection.watch();
    await until(() => calls.exits === 1);
  }),
);

test('stays closed after close', { timeout }, () =>
  scene(async ({ connection, qemu, calls, sockets, until }) => {
    await connection.connect({ timeoutMs: 1000 });
    connection.close();
    assert.equal(connection.qmp, undefined);
    await until(() => sockets[0]?.destroyed === true);
    await qemu.kill('SIGKILL');
    let turns = 0;
    await until(() => ++turns > 100);
    assert.deepEqual([calls, sockets.length], [{ reconnects: 0, exits: 0 }, 1]);
  }),
);

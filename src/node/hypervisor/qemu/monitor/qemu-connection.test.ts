/** The connection to a QEMU, with a server that only greets, and `sleep` as the process. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '#lib/log.ts';
import { QemuConnection } from '#node/hypervisor/qemu/monitor/qemu-connection.ts';
import { withSleepingQemu, type SleepingQemu } from '#node/hypervisor/qemu/testing/sleeping-qemu.ts';

interface Scene extends SleepingQemu {
  readonly connection: QemuConnection;
  readonly calls: { reconnects: number; exits: number };
}

function scene(run: (scene: Scene) => Promise<void>): Promise<void> {
  return withSleepingQemu(
    () => ({}),
    async (sleeping) => {
      const { dir, qemu, clock } = sleeping;
      const calls = { reconnects: 0, exits: 0 };
      const connection = new QemuConnection({
        ...{ dir, qemu, clock, log: silentLog },
        onEvent: () => undefined,
        onReconnect: async () => void calls.reconnects++,
        onExit: async () => void calls.exits++,
      });
      try {
        await run({ ...sleeping, connection, calls });
      } finally {
        connection.close();
      }
    },
  );
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

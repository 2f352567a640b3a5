import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { duplexPair, type Duplex } from 'node:stream';
import { test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { silentLog } from '#lib/log.ts';
import { ConsoleLog, readConsoleLogFile } from '#node/hypervisor/qemu/guest-io/console-log.ts';
import { CONSOLE_LIMITS } from '#node/hypervisor/qemu/guest-io/flow-budget.ts';
import { SerialConsole } from '#node/hypervisor/qemu/guest-io/console.ts';

const BURST_CHUNKS = CONSOLE_LIMITS.chunksPerSecond * CONSOLE_LIMITS.burstSeconds;

interface Scene {
  readonly console: SerialConsole;
  readonly clock: FakeClock;
  /** The guest's end of the newest connection. */
  guest(): Duplex;
  readonly connections: { refuse: boolean; count: number };
  log(): Promise<string>;
}

async function scene(run: (scene: Scene) => Promise<void>): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'selfsame-serial-'));
  const path = join(dir, 'console.log');
  const clock = new FakeClock();
  const connections = { refuse: false, count: 0 };
  let guest: Duplex | undefined;
  const connect = async () => {
    if (connections.refuse) throw new Error('refused');
    connections.count++;
    const [ours, theirs] = duplexPair();
    guest = theirs;
    return ours as Socket;
  };
  const console = new SerialConsole({ connect, consoleLog: new ConsoleLog(path), clock, log: silentLog });
  try {
    await console.connect();
    await run({
      console,
      clock,
      guest: () => guest as Duplex,
      connections,
      log: async () => (await readConsoleLogFile(path)).toString(),
    });
  } finally {
    await console.close();
    await rm(dir, { recursive: true });
  }
}

test('shows the output to all viewers, after it is in the log', () =>
  scene(async ({ console, guest, log }) => {
    const viewers = [console.open(), console.open()];
    const received = viewers.map((viewer) => next(viewer));
    guest().write('hello');
    assert.deepEqual(await Promise.all(received), ['hello', 'hello']);
    assert.equal(await log(), 'hello');
  }));

test('reads a flood of small chunks in few large ones, and loses nothing', () =>
  scene(async ({ console, clock, guest, log }) => {
    const viewer = console.open();
    // The budget for a burst, and the chunk that exceeds it.
    for (let i = 0; i <= BURST_CHUNKS; i++) {
      const received = next(viewer);
      guest().write('.');
      assert.equal(await received, '.');
    }
    const received = next(viewer);
    for (let i = 0; i < 100; i++) guest().write('x');
    await clock.advance(10_000);
    assert.equal(await received, 'x'.repeat(100));
    assert.equal((await log()).length, BURST_CHUNKS + 1 + 100);
  }));

test('closes while a flood is paused', () =>
  scene(async ({ console, guest }) => {
    for (let i = 0; i < 1000; i++) guest().write('x');
    await new Promise((resolve) => setImmediate(resolve));
    await console.close();
  }));

test('sends the input of every viewer to the guest', () =>
  scene(async ({ console, guest }) => {
    const received = next(guest());
    console.open().write('root\n');
    assert.equal(await received, 'root\n');
  }));

test('disconnects a viewer that does not read, and keeps the others', () =>
  scene(async ({ console, guest, log }) => {
    const asleep = console.open();
    const failed = new Promise<Error>((resolve) => asleep.once('error', resolve));
    const awake = console.open();
    let bytes = 0;
    const all = new Promise<void>((resolve) =>
      awake.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes === 20 * 65_536) resolve();
      }),
    );
    for (let i = 0; i < 20; i++) guest().write(Buffer.alloc(65_536, 0x61));
    await all;
    assert.match((await failed).message, /were not read/);
    assert.equal((await log()).length <= 1024 * 1024, true);
  }));

test('reconnects until it succeeds', () =>
  scene(async ({ console, clock, guest, connections }) => {
    const viewer = console.open();
    const broken = guest();
    connections.refuse = true;
    const closed = new Promise((resolve) => broken.once('close', resolve));
    broken.destroy();
    await closed;
    await clock.advance(3000);
    assert.equal(connections.count, 1);
    connections.refuse = false;
    await clock.advance(1000);
    assert.equal(connections.count, 2);
    const received = next(viewer);
    guest().write('back');
    assert.equal(await received, 'back');
  }));

test('fails input while the guest is not connected', () =>
  scene(async ({ console, guest, clock, connections }) => {
    connections.refuse = true;
    const broken = guest();
    const closed = new Promise((resolve) => broken.once('close', resolve));
    broken.destroy();
    await closed;
    await clock.advance(0);
    const viewer = console.open();
    const failed = new Promise<Error>((resolve) => viewer.once('error', resolve));
    viewer.write('x');
    assert.match((await failed).message, /not connected/);
  }));

test('shows the last output before the console ends', () =>
  scene(async ({ console, guest, log }) => {
    const viewer = console.open();
    let output = '';
    viewer.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const ended = new Promise((resolve) => viewer.once('close', resolve));
    guest().end('bye');
    await console.finish(1000);
    await ended;
    assert.equal(output, 'bye');
    assert.equal(await log(), 'bye');
    assert.throws(() => console.open(), /is closed/);
  }));

test('limits the number of open consoles', () =>
  scene(async ({ console }) => {
    const viewers = Array.from({ length: 32 }, () => console.open());
    assert.throws(() => console.open(), /32 consoles/);
    const closed = new Promise((resolve) => viewers[0]?.once('close', resolve));
    viewers[0]?.destroy();
    await closed;
    console.open();
  }));

function next(stream: Duplex): Promise<string> {
  return new Promise((resolve) => stream.once('data', (chunk: Buffer) => resolve(chunk.toString())));
}

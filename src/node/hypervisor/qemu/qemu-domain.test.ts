/** One domain with a monitor that the test answers, and `sleep` as its process. */
import assert from 'node:assert/strict';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { FakeClock } from '#client/testing/fake-clock.ts';
import { silentLog } from '#lib/log.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';
import { DomainDir } from '#node/hypervisor/qemu/process/domain-dir.ts';
import { spawnDetached } from '#node/hypervisor/qemu/process/process.ts';
import { waitWithClock } from '#node/hypervisor/qemu/testing/wait-with-clock.ts';
import { QemuDomain } from '#node/hypervisor/qemu/qemu-domain.ts';

interface Scene {
  readonly domain: QemuDomain;
  /** The answer to query-status; undefined for no answer. */
  status: string | undefined;
  readonly commands: string[];
  /** Answers to other commands. */
  readonly answers: Map<string, unknown>;
  emit(event: string): void;
  /** Advances the clock until the condition holds; the test's timeout is the limit. */
  until(isSo: () => boolean): Promise<void>;
}

async function scene(run: (scene: Scene) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'selfsame-domain-'));
  const dir = new DomainDir(root, 'a-uid');
  await dir.prepare(undefined);
  const clock = new FakeClock();
  const log = await open(join(root, 'log'), 'a');
  const qemu = await spawnDetached(
    { command: 'sleep', args: ['60'], cwd: root, user: undefined, logFd: log.fd },
    clock,
  );
  const sockets: Socket[] = [];
  const answer = (socket: Socket, command: string, id: number) => {
    made.commands.push(command);
    if (command === 'quit') void qemu.kill('SIGKILL');
    if (command === 'query-status' && made.status === undefined) return;
    const result = made.answers.get(command) ?? { status: made.status };
    socket.write(`${JSON.stringify({ return: result, id })}\n`);
  };
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.write('{"QMP": {}}\n');
    socket.on('data', (bytes: Buffer) => {
      for (const line of bytes.toString().trim().split('\n')) {
        const { execute, id } = JSON.parse(line) as { execute: string; id: number };
        answer(socket, execute, id);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(join(dir.run, 'qmp.sock'), resolve));
  const definition = aDefinition({ id: 'a-uid', devices: [] });
  const started = { startedAtMs: 0, qemu: qemu.identity };
  const domain = new QemuDomain({
    ...{ dir, qemu, swtpm: undefined, onChange: () => undefined },
    record: { version: 1, definition, paused: false, started },
    context: {
      ...{ clock, log: silentLog, user: undefined, accelerator: 'tcg' },
      ...{ qemuBinary: 'sleep', swtpmBinary: 'sleep', ovmfDir: '/' },
    },
  });
  const made: Scene = {
    domain,
    status: 'running',
    commands: [],
    answers: new Map(),
    emit: (event) => void sockets.at(-1)?.write(`${JSON.stringify({ event })}\n`),
    until: waitWithClock(clock),
  };
  try {
    await run(made);
  } finally {
    await domain.close();
    await qemu.kill('SIGKILL');
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
    await log.close();
    await rm(root, { recursive: true });
  }
}

const timeout = 20_000;

test('notices the end of a guest although its QEMU was too busy to answer', { timeout }, () =>
  scene(async (it) => {
    await it.domain.adopt({ timeoutMs: 1000 });
    assert.deepEqual(it.domain.view.current, { state: 'running' });
    it.status = undefined;
    it.commands.length = 0;
    it.emit('SHUTDOWN');
    await it.until(() => it.commands.length >= 2);
    it.status = 'shutdown';
    await it.until(() => it.domain.view.current.state === 'ended');
    assert.deepEqual(it.domain.view.current, { state: 'ended', how: 'shutdown' });
  }),
);

test('counts an adopted guest as running until its QEMU answers', { timeout }, () =>
  scene(async (it) => {
    it.status = undefined;
    const adopted = it.domain.adopt({ timeoutMs: 1000 });
    let done = false;
    void adopted.then(() => (done = true));
    await it.until(() => done);
    assert.deepEqual(it.domain.view.current, { state: 'running' });
    it.status = 'paused';
    await it.until(() => it.domain.view.current.state === 'paused');
  }),
);

test('reports why a guest is paused, also when the reason changes', { timeout }, () =>
  scene(async (it) => {
    await it.domain.adopt({ timeoutMs: 1000 });
    for (const [status, want] of [
      ['io-error', { state: 'paused', why: 'ioError' }],
      ['paused', { state: 'paused' }],
    ] as const) {
      it.status = status;
      it.emit('STOP');
      await it.until(() => JSON.stringify(it.domain.view.current) === JSON.stringify(want));
    }
  }),
);

test('reports missing space for a copy as permanent', { timeout }, () =>
  scene(async (it) => {
    await it.domain.adopt({ timeoutMs: 1000 });
    const image = { 'virtual-size': 2 ** 50, 'actual-size': 2 ** 50 };
    it.answers.set('query-jobs', []);
    it.answers.set('query-block', [{ qdev: 'disk-a', inserted: { 'node-name': 'a', image } }]);
    const copy = { copyId: 'a', deviceId: 'disk-a', path: import.meta.filename };
    await assert.rejects(it.domain.copies.start([copy]), { permanent: true, message: /not enough space for/ });
  }),
);

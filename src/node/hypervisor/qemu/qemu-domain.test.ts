/** One domain with a monitor that the test answers, and `sleep` as its process. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '#lib/log.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';
import { withSleepingQemu } from '#node/hypervisor/qemu/testing/sleeping-qemu.ts';
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

function scene(run: (scene: Scene) => Promise<void>): Promise<void> {
  const commands: string[] = [];
  const answers = new Map<string, unknown>();
  let made: Scene | undefined;
  let quit = () => {};
  const answer = (command: string) => {
    commands.push(command);
    if (command === 'quit') quit();
    const status = made === undefined ? 'running' : made.status;
    if (command === 'query-status' && status === undefined) return undefined;
    return answers.get(command) ?? { status };
  };
  return withSleepingQemu(answer, async ({ dir, qemu, clock, sockets, until }) => {
    quit = () => void qemu.kill('SIGKILL');
    const definition = aDefinition({ id: 'a-uid', devices: [] });
    const started = { startedAtMs: 0, qemu: qemu.identity };
    const domain = new QemuDomain({
      ...{ dir, qemu, swtpm: undefined, onChange: () => undefined },
      record: { version: 1, definition, paused: false, started },
      context: {
        ...{ clock, log: silentLog, sandboxes: undefined, accelerator: 'tcg' },
        ...{ qemuBinary: 'sleep', swtpmBinary: 'sleep', ovmfDir: '/' },
      },
    });
    const emit = (event: string) => void sockets.at(-1)?.write(`${JSON.stringify({ event })}\n`);
    made = { domain, status: 'running', commands, answers, emit, until };
    try {
      await run(made);
    } finally {
      await domain.close();
    }
  });
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

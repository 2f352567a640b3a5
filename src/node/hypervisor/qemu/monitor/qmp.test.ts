import assert from 'node:assert/strict';
import { duplexPair, type Duplex } from 'node:stream';
import { test } from 'node:test';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import { QmpClient, QmpError, type QmpEvent } from '#node/hypervisor/qemu/monitor/qmp.ts';

const GREETING = { QMP: { version: {}, capabilities: [] } };

interface Command {
  readonly execute: string;
  readonly arguments?: unknown;
  readonly id: number;
}

/** The side of QEMU: sends what the test tells it to, and collects the commands. */
function scene() {
  const clock = new FakeClock();
  const [ours, qemu] = duplexPair();
  const commands: Command[] = [];
  const events: QmpEvent[] = [];
  const closed = { times: 0 };
  let answering = true;
  qemu.on('data', (bytes: Buffer) => {
    for (const line of bytes.toString().trim().split('\n')) {
      const command = JSON.parse(line) as Command;
      commands.push(command);
      if (answering && command.execute === 'qmp_capabilities') send(qemu, { return: {}, id: command.id });
    }
  });
  const open = () =>
    QmpClient.open(ours, { clock, onEvent: (event) => events.push(event), onClose: () => closed.times++ });
  const mute = () => (answering = false);
  return { clock, qemu, commands, events, closed, open, mute };
}

function send(qemu: Duplex, message: unknown): void {
  qemu.write(`${JSON.stringify(message)}\r\n`);
}

async function openClient() {
  const made = scene();
  send(made.qemu, GREETING);
  return { ...made, client: await made.open() };
}

test('sends commands only after the greeting and the capabilities', async () => {
  const { qemu, commands, open } = scene();
  const opening = open();
  await settle();
  assert.deepEqual(commands, []);
  send(qemu, GREETING);
  await opening;
  assert.deepEqual(
    commands.map(({ execute }) => execute),
    ['qmp_capabilities'],
  );
});

test('assigns answers to commands in any order', async () => {
  const { client, qemu, commands } = await openClient();
  const [first, second] = [client.execute('query-status'), client.execute('query-pci', { a: 1 })];
  await settle();
  assert.deepEqual(commands[2]?.arguments, { a: 1 });
  send(qemu, { return: 'pci', id: commands[2]?.id });
  send(qemu, { return: 'status', id: commands[1]?.id });
  assert.deepEqual(await Promise.all([first, second]), ['status', 'pci']);
});

test('accepts messages in pieces, and several at once', async () => {
  const { client, qemu, commands, events } = await openClient();
  const answer = client.execute('query-status');
  await settle();
  const text = `${JSON.stringify({ event: 'STOP', data: {} })}\n${JSON.stringify({ return: 'é', id: commands[1]?.id })}\n`;
  for (const byte of Buffer.from(text)) qemu.write(Buffer.from([byte]));
  assert.equal(await answer, 'é');
  assert.deepEqual(events, [{ name: 'STOP', data: {} }]);
});

test('reports a refusal with the class and text of QEMU', async () => {
  const { client, qemu, commands } = await openClient();
  const answer = client.execute('cont');
  await settle();
  send(qemu, { error: { class: 'GenericError', desc: 'no way' }, id: commands[1]?.id });
  await assert.rejects(answer, new QmpError('GenericError', 'QEMU refused "cont": no way'));
});

const refusals: Record<string, unknown> = {
  'an object that has no text': { class: { toString: 1, valueOf: 1 }, desc: { toString: 1, valueOf: 1 } },
  'a list': { class: ['a'], desc: [] },
  'a text': 'no way',
  null: null,
};
for (const [what, error] of Object.entries(refusals)) {
  test(`a refusal whose error is ${what} fails the command, and the next command works`, async () => {
    const { client, qemu, commands } = await openClient();
    const answer = client.execute('cont');
    await settle();
    send(qemu, { error, id: commands[1]?.id });
    await assert.rejects(answer, new QmpError('', 'QEMU refused "cont": '));
    const next = client.execute('query-status');
    await settle();
    send(qemu, { return: 'status', id: commands[2]?.id });
    assert.equal(await next, 'status');
  });
}

test('disconnects if an answer is nested more deeply than QEMU nests', async () => {
  const { qemu, closed } = await openClient();
  qemu.write(`{"return":${'['.repeat(10_000)}${']'.repeat(10_000)},"id":2}\n`);
  await settle();
  assert.equal(closed.times, 1);
});

test('fails a command after its timeout, and drops its late answer', async () => {
  const { client, clock, qemu, commands } = await openClient();
  const late = client.execute('query-status', undefined, { timeoutMs: 100 });
  const rejected = assert.rejects(late, (error) => error instanceof QmpError && error.class === 'Timeout');
  await clock.advance(100);
  await rejected;
  const next = client.execute('query-pci');
  await settle();
  send(qemu, { return: 'late', id: commands[1]?.id });
  send(qemu, { return: 'in time', id: commands[2]?.id });
  assert.equal(await next, 'in time');
});

test('fails pending and later commands when QEMU disconnects', async () => {
  const { client, qemu, closed } = await openClient();
  const pending = client.execute('query-status');
  const rejected = assert.rejects(pending, (error) => error instanceof QmpError && error.class === 'Disconnected');
  qemu.end();
  await rejected;
  await assert.rejects(client.execute('quit'), /not connected/);
  await settle();
  assert.equal(closed.times, 1);
});

test('does not call onClose after close', async () => {
  const { client, closed } = await openClient();
  client.close();
  await settle();
  assert.equal(closed.times, 0);
});

test('disconnects after invalid JSON', async () => {
  const { qemu, closed } = await openClient();
  qemu.write('{ "return": \n');
  await settle();
  assert.equal(closed.times, 1);
});

test('disconnects if a line does not end', async () => {
  const { qemu, closed } = await openClient();
  const chunk = Buffer.alloc(1024 * 1024, 0x20);
  for (let i = 0; i < 5; i++) qemu.write(chunk);
  await settle();
  await settle();
  assert.equal(closed.times, 1);
});

test('limits the number of pending commands', async () => {
  const { client } = await openClient();
  const pending = Array.from({ length: 128 }, () => client.execute('query-status'));
  await assert.rejects(client.execute('query-status'), /too many commands/);
  client.close();
  assert.ok((await Promise.allSettled(pending)).every(({ status }) => status === 'rejected'));
});

test('fails without a greeting', async () => {
  const { clock, open } = scene();
  const rejected = assert.rejects(open(), /did not send its greeting/);
  await clock.advance(10_000);
  await rejected;
});

test('fails at once if QEMU disconnects before its greeting', async () => {
  const { qemu, open } = scene();
  const rejected = assert.rejects(open(), /closed the connection/);
  qemu.destroy();
  await rejected;
});

test('fails if QEMU does not answer qmp_capabilities', async () => {
  const { clock, qemu, open, mute } = scene();
  mute();
  send(qemu, GREETING);
  const rejected = assert.rejects(open(), /did not answer "qmp_capabilities"/);
  await clock.advance(10_000);
  await rejected;
});

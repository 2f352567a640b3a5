import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { duplexPair, type Duplex } from 'node:stream';
import { test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { GuestAgentError, type AgentErrorReason } from '#node/hypervisor/guest-access.ts';
import { AgentConnection } from '#node/hypervisor/qemu/guest-io/agent-connection.ts';

interface Command {
  readonly execute: string;
  readonly arguments?: { readonly id?: number };
}
type Answer = (command: Command, guest: Duplex) => void;

const send = (guest: Duplex, value: unknown) => void guest.write(`${JSON.stringify(value)}\n`);
/** Answers as qemu-ga does, with a mark before the answer to guest-sync-delimited. */
const answerAsAgent: Answer = ({ execute, arguments: args }, guest) => {
  if (execute === 'guest-sync-delimited') guest.write(Buffer.from([0xff]));
  send(guest, { return: execute === 'guest-sync-delimited' ? args?.id : `done ${execute}` });
};

/** A guest with these answers, which counts its connections. */
function scene(answer: Answer = answerAsAgent, { holds = false }: { holds?: boolean } = {}) {
  const clock = new FakeClock();
  const received: string[] = [];
  let connections = 0;
  let guest: Duplex | undefined;
  let end: Duplex | undefined;
  const held = Promise.withResolvers<void>();
  if (!holds) held.resolve();
  const changes: boolean[] = [];
  const connect = async () => {
    connections++;
    const [ours, theirs] = duplexPair();
    await held.promise;
    [end, guest] = [ours, theirs];
    theirs.on('data', (bytes: Buffer) => {
      for (const line of bytes.toString('latin1').replaceAll('\xff', '').trim().split('\n')) {
        const command = JSON.parse(line) as Command;
        received.push(command.execute);
        answer(command, theirs);
      }
    });
    return ours as unknown as Socket;
  };
  const connection: AgentConnection = new AgentConnection({
    deviceId: 'agent0',
    connect,
    clock,
    onChange: () => changes.push(connection.isOpen),
  });
  const open = (isOpen: boolean) =>
    connection.onEvent({ name: 'VSERPORT_CHANGE', data: { id: 'agent0', open: isOpen } });
  return {
    ...{ connection, clock, received, open, changes, held },
    disconnect: () => guest?.end(),
    speak: (text: string) => guest?.write(text),
    connections: () => connections,
    ends: () => end,
  };
}
const hasReason = (fault: AgentErrorReason) => (error: unknown) =>
  error instanceof GuestAgentError && error.reason === fault;
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('sends nothing while no agent listens', async () => {
  const { connection, connections, open, changes } = scene();
  await assert.rejects(connection.ask({ execute: 'guest-ping' }), hasReason('NotConnected'));
  assert.equal(connections(), 0);
  open(true);
  open(true);
  connection.onEvent({ name: 'VSERPORT_CHANGE', data: { id: 'other', open: false } });
  assert.equal(await connection.ask({ execute: 'guest-ping' }), 'done guest-ping');
  open(false);
  assert.deepEqual(changes, [true, false]);
  await assert.rejects(connection.ask({ execute: 'guest-ping' }), hasReason('NotConnected'));
});

test('sends commands one at a time, after one sync per connection', async () => {
  const { connection, received, open } = scene();
  open(true);
  const answers = await Promise.all([connection.ask({ execute: 'a' }), connection.ask({ execute: 'b' })]);
  assert.deepEqual(answers, ['done a', 'done b']);
  assert.deepEqual(received, ['guest-sync-delimited', 'a', 'b']);
});

test('drops partial answers and answers to earlier clients', async () => {
  const { connection, open } = scene(({ execute, arguments: args }, guest) => {
    if (execute !== 'guest-sync-delimited') return send(guest, { return: 'mine' });
    guest.write('"return": "old"}\n');
    send(guest, { return: 'old' });
    guest.write(Buffer.from('half an ans\xff', 'latin1'));
    send(guest, { return: args?.id });
  });
  open(true);
  assert.equal(await connection.ask({ execute: 'a' }), 'mine');
});

test('disconnects after a timeout; the next command reconnects', async () => {
  let isSilent = true;
  const { connection, clock, open, received, connections } = scene((command, guest) => {
    if (command.execute !== 'a' || !isSilent) answerAsAgent(command, guest);
  });
  open(true);
  const pending = connection.ask({ execute: 'a' }, { timeoutMs: 700 });
  const refused = assert.rejects(pending, hasReason('NoAnswer'));
  while (!received.includes('a')) await turn();
  await clock.advance(700);
  await refused;
  isSilent = false;
  assert.equal(await connection.ask({ execute: 'a' }), 'done a');
  assert.equal(connections(), 2);
});

test('reports a refusal in the guest’s words, shortened', async () => {
  const { connection, open } = scene((command, guest) => {
    if (command.execute === 'guest-sync-delimited') answerAsAgent(command, guest);
    else send(guest, { error: { class: 'GenericError', desc: 'x'.repeat(10_000) } });
  });
  open(true);
  await assert.rejects(connection.ask({ execute: 'a' }), (error: Error) => {
    return hasReason('Refused')(error) && error.message.includes('GenericError') && error.message.length < 400;
  });
});

test('disconnects from a guest that never ends its answer', async () => {
  const { connection, open } = scene((command, guest) => {
    if (command.execute === 'guest-sync-delimited') answerAsAgent(command, guest);
    else guest.write(Buffer.alloc(1_100_000, 'x'));
  });
  open(true);
  await assert.rejects(connection.ask({ execute: 'a' }), hasReason('NoAnswer'));
});

test('disconnects from a guest that sends too many unwanted lines', async () => {
  const { connection, open } = scene((command, guest) => {
    if (command.execute === 'guest-sync-delimited')
      for (let i = 0; i < 40; i++) guest.write(`"${'x'.repeat(30_000)}"\n`);
  });
  open(true);
  await assert.rejects(connection.ask({ execute: 'a' }), /sent more than 1048576 bytes/);
});

test('accepts an answer byte by byte', async () => {
  const { connection, open } = scene((command, guest) => {
    if (command.execute === 'guest-sync-delimited') answerAsAgent(command, guest);
    else for (const byte of Buffer.from('{"return": "in pieces"}\n')) guest.write(Buffer.from([byte]));
  });
  open(true);
  assert.equal(await connection.ask({ execute: 'a' }), 'in pieces');
});

test('disconnects after data without a command, and reconnects', async () => {
  const { connection, open, speak, connections } = scene();
  open(true);
  await connection.ask({ execute: 'a' });
  speak('{"return": "unasked"}\n');
  await turn();
  assert.equal(await connection.ask({ execute: 'b' }), 'done b');
  assert.equal(connections(), 2);
});

test('stays closed if it is closed while connecting', async () => {
  const { connection, open, held, ends } = scene(answerAsAgent, { holds: true });
  open(true);
  const pending = assert.rejects(connection.ask({ execute: 'a' }), hasReason('NotConnected'));
  await turn();
  connection.close();
  held.resolve();
  await pending;
  assert.equal(ends()?.destroyed, true);
});

test('fails pending commands when the connection is lost', async () => {
  const { connection, open, disconnect } = scene((command, guest) => {
    if (command.execute === 'guest-sync-delimited') answerAsAgent(command, guest);
    else disconnect();
  });
  open(true);
  await assert.rejects(connection.ask({ execute: 'a' }), hasReason('NotConnected'));
});

test('limits the number of waiting commands', async () => {
  const { connection, open } = scene(() => undefined);
  open(true);
  const waiting = Array.from({ length: 33 }, () => connection.ask({ execute: 'a' }));
  await assert.rejects(waiting.at(-1)!, /too many commands are waiting/);
  const ends = Promise.allSettled(waiting);
  await turn();
  connection.close();
  await ends;
});

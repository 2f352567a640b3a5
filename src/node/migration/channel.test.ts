import assert from 'node:assert/strict';
import { duplexPair, type Duplex } from 'node:stream';
import { describe, it } from 'node:test';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import {
  Channel,
  ChannelClosedError,
  MAX_CHANNEL_MESSAGE_BYTES,
  SILENCE_TIMEOUT_MS,
  KEEP_ALIVE_MS,
} from '#node/migration/channel.ts';

interface Message {
  readonly type: string;
}
const read = (value: unknown): Message | undefined =>
  typeof (value as Message).type === 'string' ? (value as Message) : undefined;

function aChannel(): { clock: FakeClock; channel: Channel<Message, Message>; far: Duplex } {
  const clock = new FakeClock();
  const [near, far] = duplexPair();
  return { clock, channel: new Channel<Message, Message>(near, { clock, read }), far };
}

describe('a channel', () => {
  it('reads messages that arrive in pieces, also before they are requested', async () => {
    const { channel, far } = aChannel();
    const text = '{"type":"a"}\n{"type":"b"}\n{"type":"c"}\n';
    for (const letter of text) far.write(letter);
    await settle();
    assert.deepEqual(
      [await channel.next(), await channel.next(), await channel.next()].map(({ type }) => type),
      ['a', 'b', 'c'],
    );
  });

  it('returns the messages that arrived before it was closed', async () => {
    const { channel, far } = aChannel();
    far.end('{"type":"last"}\n');
    await settle();
    assert.deepEqual(await channel.next(), { type: 'last' });
    await assert.rejects(channel.next(), ChannelClosedError);
  });

  const failures: Record<string, (far: Duplex) => void> = {
    'the other side disconnects': (far) => void far.destroy(),
    'the other side sends invalid JSON': (far) => void far.write('hello\n'),
    'the other side sends an unknown message': (far) => void far.write('{"no":1}\n'),
    'a line is too long': (far) => void far.write(Buffer.alloc(MAX_CHANNEL_MESSAGE_BYTES + 1, 'a')),
    'too many messages are unread': (far) => void far.write('{"type":"a"}\n'.repeat(17)),
  };
  for (const [sentence, fail] of Object.entries(failures)) {
    it(`is closed when ${sentence}`, async () => {
      const { channel, far } = aChannel();
      far.on('error', () => {});
      fail(far);
      await settle();
      await settle();
      assert.ok(channel.closed.aborted);
      await assert.rejects(channel.send({ type: 'a' }), ChannelClosedError);
    });
  }

  it('sends keep-alives, and is closed after a long silence', async () => {
    const { clock, channel, far } = aChannel();
    const received: string[] = [];
    const waiting = assert.rejects(channel.next(), /sent nothing for 30 seconds/);
    far.on('data', (chunk: Buffer) => received.push(chunk.toString()));
    await clock.advance(KEEP_ALIVE_MS);
    await settle();
    assert.deepEqual(received, ['{"type":"still-there"}\n']);
    far.write('{"type":"still-there"}\n');
    await settle();
    await clock.advance(SILENCE_TIMEOUT_MS - 1);
    assert.equal(channel.closed.aborted, false);
    await clock.advance(1);
    await waiting;
  });

  it('sends pending messages when it is closed, and leaves no timer behind', async () => {
    const { clock, channel, far } = aChannel();
    const received: string[] = [];
    far.on('data', (chunk: Buffer) => received.push(chunk.toString()));
    channel.trySend({ type: 'bye' });
    channel.close();
    await settle();
    assert.deepEqual(received, ['{"type":"bye"}\n']);
    assert.equal(clock.pendingTimers, 0);
  });

  it('rejects when the timeout of a read is over', async () => {
    const { clock, channel } = aChannel();
    const waiting = assert.rejects(channel.next({ timeoutMs: 1000 }), /did not answer for 1 seconds/);
    await clock.advance(1000);
    await waiting;
    assert.equal(channel.closed.aborted, false);
  });
});

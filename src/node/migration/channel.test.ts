import assert from 'node:assert/strict';
import { duplexPair, type Duplex } from 'node:stream';
import { describe, it } from 'node:test';
import { FakeClock, settle } from '#client/testing/fake-clock.ts';
import { Channel, ChannelGone, MAX_LINE_BYTES, SILENCE_MS, STILL_THERE_MS } from '#node/migration/channel.ts';

interface Word {
  readonly type: string;
}
const read = (value: unknown): Word | undefined =>
  typeof (value as Word).type === 'string' ? (value as Word) : undefined;

function aPair(): { clock: FakeClock; channel: Channel<Word, Word>; far: Duplex } {
  const clock = new FakeClock();
  const [near, far] = duplexPair();
  return { clock, channel: new Channel<Word, Word>(near, { clock, read }), far };
}

describe('a channel', () => {
  it('reads lines however they come in pieces, also what came before it was asked', async () => {
    const { channel, far } = aPair();
    const text = '{"type":"a"}\n{"type":"b"}\n{"type":"c"}\n';
    for (const letter of text) far.write(letter);
    await settle();
    assert.deepEqual(
      [await channel.next(), await channel.next(), await channel.next()].map(({ type }) => type),
      ['a', 'b', 'c'],
    );
  });

  it('still tells what was said before the other side went', async () => {
    const { channel, far } = aPair();
    far.end('{"type":"last"}\n');
    await settle();
    assert.deepEqual(await channel.next(), { type: 'last' });
    await assert.rejects(channel.next(), ChannelGone);
  });

  const faults: Record<string, (far: Duplex) => void> = {
    'the other side goes': (far) => void far.destroy(),
    'the other side says no JSON': (far) => void far.write('hello\n'),
    'the other side says what is no message': (far) => void far.write('{"no":1}\n'),
    'a line does not end': (far) => void far.write(Buffer.alloc(MAX_LINE_BYTES + 1, 'a')),
    'more is said than anybody asked for': (far) => void far.write('{"type":"a"}\n'.repeat(17)),
  };
  for (const [what, fault] of Object.entries(faults)) {
    it(`is gone when ${what}`, async () => {
      const { channel, far } = aPair();
      far.on('error', () => {});
      fault(far);
      await settle();
      await settle();
      assert.ok(channel.gone.aborted);
      await assert.rejects(channel.send({ type: 'a' }), ChannelGone);
    });
  }

  it('says now and then that it is there, and takes silence for absence', async () => {
    const { clock, channel, far } = aPair();
    const heard: string[] = [];
    const waiting = assert.rejects(channel.next(), /nothing was heard/);
    far.on('data', (chunk: Buffer) => heard.push(chunk.toString()));
    await clock.advance(STILL_THERE_MS);
    await settle();
    assert.deepEqual(heard, ['{"type":"still-there"}\n']);
    far.write('{"type":"still-there"}\n');
    await settle();
    await clock.advance(SILENCE_MS - 1);
    assert.equal(channel.gone.aborted, false);
    await clock.advance(1);
    await waiting;
  });

  it('leaves no timer behind when it is closed, and sends what was said', async () => {
    const { clock, channel, far } = aPair();
    const heard: string[] = [];
    far.on('data', (chunk: Buffer) => heard.push(chunk.toString()));
    channel.say({ type: 'bye' });
    channel.close();
    await settle();
    assert.deepEqual(heard, ['{"type":"bye"}\n']);
    assert.equal(clock.pendingTimers, 0);
  });

  it('waits no longer than it is told to', async () => {
    const { clock, channel } = aPair();
    const waiting = assert.rejects(channel.next({ timeoutMs: 1000 }), /said nothing for 1 seconds/);
    await clock.advance(1000);
    await waiting;
    assert.equal(channel.gone.aborted, false);
  });
});

import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { connectionSizes, ConnectionLimits } from '#engine/http/connection-limits.ts';

const HEAD_MS = 10_000;
let lastId = 0;

class FakeSocket {
  readonly id = String(++lastId);
  readonly remoteAddress: string;
  isDestroyed = false;

  constructor(remoteAddress: string) {
    this.remoteAddress = remoteAddress;
  }

  destroy(): void {
    this.isDestroyed = true;
  }
}

describe('ConnectionLimits', () => {
  let now = 0;
  let limits: ConnectionLimits;
  beforeEach(() => {
    now = 0;
    const sizes = { total: 4, anonymousPerAddress: 2, perUser: 2, headMs: HEAD_MS };
    limits = new ConnectionLimits({ sizes, elapsed: () => now });
  });
  const open = (address = 'a') => {
    const socket = new FakeSocket(address);
    limits.accept(socket.id, socket);
    return socket;
  };
  const openKnown = (user: string, address = user) => {
    const socket = open(address);
    limits.beginRequest(socket.id)();
    limits.identify(socket.id, user);
    return socket;
  };
  const destroyed = (...sockets: FakeSocket[]) => sockets.map(({ isDestroyed }) => isDestroyed);

  it('replaces the oldest connection without a user of the same address', () => {
    const [first, other, second, third] = [open('a'), open('b'), open('a'), open('a')];
    assert.deepEqual(destroyed(first, other, second, third), [true, false, false, false]);
    limits.stop();
  });

  it('replaces a connection without a user, not one of a user, if there are too many', () => {
    const known = [openKnown('one'), openKnown('two'), openKnown('three')];
    const unknown = open('x');
    const next = open('y');
    assert.deepEqual(destroyed(...known, unknown, next), [false, false, false, true, false]);
    limits.stop();
  });

  it('refuses a connection if all others have a user', () => {
    const known = [openKnown('one'), openKnown('two'), openKnown('three'), openKnown('four')];
    assert.deepEqual(destroyed(...known, open('x')), [false, false, false, false, true]);
    limits.stop();
  });

  it('closes an idle connection of a user who has too many, and none of others', () => {
    const other = openKnown('other');
    const busy = openKnown('one');
    limits.beginRequest(busy.id);
    const idle = openKnown('one');
    const third = openKnown('one');
    assert.deepEqual(destroyed(other, busy, idle, third), [false, false, true, false]);
    limits.stop();
  });

  it('closes connections that send no complete request in time, and idle ones', () => {
    const slow = open('slow');
    const known = openKnown('one');
    const watching = openKnown('two');
    limits.beginRequest(watching.id);
    now = HEAD_MS;
    limits.sweep();
    assert.deepEqual(destroyed(slow, known, watching), [true, false, false]);
    now = 60 * 60_000;
    limits.sweep();
    assert.deepEqual(destroyed(known, watching), [true, false]);
    assert.equal(limits.size, 1);
    limits.stop();
  });
});

describe('connectionSizes leaves descriptors for everything else', () => {
  const cases: Record<string, { limit: number; want: number }> = {
    'the usual limit': { limit: 1024, want: 768 },
    'a high limit': { limit: 20_000, want: 8192 },
    'no limit': { limit: Infinity, want: 8192 },
    'a very low limit': { limit: 100, want: 64 },
  };
  for (const [name, { limit, want }] of Object.entries(cases)) {
    it(name, () => assert.equal(connectionSizes(limit).total, want));
  }
});

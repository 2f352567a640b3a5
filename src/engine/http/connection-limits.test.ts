import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { connectionSizes, ConnectionLimits } from '#engine/http/connection-limits.ts';

const HEAD_MS = 10_000;

class FakeSocket {
  readonly remoteAddress: string | undefined;
  isDestroyed = false;

  constructor(remoteAddress: string | undefined) {
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
    const sizes = { total: 4, anonymousPerAddress: 2, securedPerAddress: 2, secured: 3, perUser: 2, headMs: HEAD_MS };
    limits = new ConnectionLimits({ sizes, elapsed: () => now });
  });
  afterEach(() => limits.stop());
  const open = (address: string | undefined = 'a') => {
    const socket = new FakeSocket(address);
    limits.accept(socket);
    return socket;
  };
  const openSecured = (address = 'a') => {
    const socket = open(address);
    limits.secure(socket);
    return socket;
  };
  const openKnown = (user: string, address = user) => {
    const socket = open(address);
    limits.beginRequest(socket)();
    limits.identify(socket, user);
    return socket;
  };
  const destroyed = (...sockets: FakeSocket[]) => sockets.map(({ isDestroyed }) => isDestroyed);

  it('replaces the oldest connection without a user of the same address', () => {
    const [first, other, second, third] = [open('a'), open('b'), open('a'), open('a')];
    assert.deepEqual(destroyed(first, other, second, third), [true, false, false, false]);
  });

  it('replaces a connection without a user, not one of a user, if there are too many', () => {
    const known = [openKnown('one'), openKnown('two'), openKnown('three')];
    const unknown = open('x');
    const next = open('y');
    assert.deepEqual(destroyed(...known, unknown, next), [false, false, false, true, false]);
  });

  it('replaces an idle connection of the user who has the most if all others have a user', () => {
    const known = [openKnown('one'), openKnown('two'), openKnown('two'), openKnown('three')];
    limits.beginRequest(known[1]!);
    assert.deepEqual(destroyed(...known, open('x')), [false, false, true, false, false]);
    assert.equal(limits.size, 4);
  });

  it('replaces the oldest connection of the user who has the most if none of them is idle', () => {
    const known = [openKnown('one'), openKnown('two'), openKnown('two'), openKnown('three')];
    for (const socket of known) limits.beginRequest(socket);
    assert.deepEqual(destroyed(...known, open('x')), [false, true, false, false, false]);
  });

  it('keeps the new one of two connections with the same address and port', () => {
    // The client resets a connection and opens another one before the server has noticed.
    const [old, renewed] = [open('a'), open('a')];
    limits.remove(old);
    assert.equal(limits.size, 1);
    const [next, last] = [open('a'), open('a')];
    assert.deepEqual(destroyed(renewed, next, last), [true, false, false]);
  });

  it('does not count a connection whose client has gone', () => {
    const gone = new FakeSocket(undefined);
    assert.equal(limits.accept(gone), false);
    assert.equal(gone.isDestroyed, true);
    assert.equal(limits.size, 0);
  });

  it('bounds the connections without a user after their handshakes, of one address and in all', () => {
    const [first, second, third] = [openSecured('a'), openSecured('a'), openSecured('a')];
    assert.deepEqual(destroyed(first, second, third), [true, false, false]);
    limits.beginRequest(third)();
    const [other, another] = [openSecured('b'), openSecured('c')];
    assert.deepEqual(destroyed(second, third, other, another), [false, true, false, false]);
  });

  it('closes a connection without a user whose requests never end', () => {
    const [anonymous, known] = [openSecured('a'), openKnown('one')];
    for (const socket of [anonymous, known]) limits.beginRequest(socket);
    now = HEAD_MS;
    limits.sweep();
    assert.deepEqual(destroyed(anonymous, known), [true, false]);
  });

  it('ends the session of an idle HTTP/2 connection, so that the client gets a GOAWAY', () => {
    const known = openKnown('one');
    let hasGoaway = false;
    limits.setEnd(known, () => (hasGoaway = true));
    now = 60 * 60_000;
    limits.sweep();
    assert.deepEqual(
      { hasGoaway, isDestroyed: known.isDestroyed, size: limits.size },
      { hasGoaway: true, isDestroyed: false, size: 0 },
    );
  });

  it('closes an idle connection of a user who has too many, and none of others', () => {
    const other = openKnown('other');
    const busy = openKnown('one');
    limits.beginRequest(busy);
    const idle = openKnown('one');
    const third = openKnown('one');
    assert.deepEqual(destroyed(other, busy, idle, third), [false, false, true, false]);
  });

  it('closes connections that send no complete request in time, and idle ones', () => {
    const slow = open('slow');
    const known = openKnown('one');
    const watching = openKnown('two');
    limits.beginRequest(watching);
    now = HEAD_MS;
    limits.sweep();
    assert.deepEqual(destroyed(slow, known, watching), [true, false, false]);
    now = 60 * 60_000;
    limits.sweep();
    assert.deepEqual(destroyed(known, watching), [true, false]);
    assert.equal(limits.size, 1);
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

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, it } from 'node:test';
import { Handshakes, MAX_BEGUN, MAX_BEGUN_PER_ADDRESS } from '#engine/http/handshakes.ts';
import { FairTurns } from '#lib/fair-turns.ts';

class FakeSocket extends EventEmitter {
  readonly remoteAddress: string;
  bytesRead = 0;
  destroyed = false;

  constructor(remoteAddress: string) {
    super();
    this.remoteAddress = remoteAddress;
  }

  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

const nextTurn = () => new Promise<void>((resolve) => void setImmediate(resolve));

function aScene() {
  const begun: FakeSocket[] = [];
  const handshakes = new Handshakes<FakeSocket>({
    turns: new FairTurns(() => 0),
    begin: (socket) => begun.push(socket),
  });
  const open = (address: string) => {
    const socket = new FakeSocket(address);
    handshakes.add(socket);
    return socket;
  };
  return { begun, handshakes, open };
}

const times = <T>(count: number, make: () => T) => Array.from({ length: count }, make);
const countOpen = (sockets: readonly FakeSocket[]) => sockets.filter(({ destroyed }) => !destroyed).length;

describe('Handshakes', () => {
  it('begins a few at once, and in later turns the newest first', async () => {
    const { begun, open } = aScene();
    const sockets = times(5, () => open('a'));
    const names = () => begun.map((socket) => sockets.indexOf(socket));
    assert.deepEqual(names(), [0, 1]);
    for (let turn = 0; turn < 5; turn++) await nextTurn();
    assert.deepEqual(names(), [0, 1, 4, 3, 2]);
  });

  it('begins one of another address at once while one address waits', () => {
    const { begun, open } = aScene();
    times(100, () => open('a'));
    const other = open('b');
    assert.equal(begun.at(-1), other);
  });

  it('does not begin one whose client has left', async () => {
    const { begun, open } = aScene();
    const sockets = times(5, () => open('a'));
    sockets[4]!.destroy();
    for (let turn = 0; turn < 5; turn++) await nextTurn();
    assert.ok(!begun.includes(sockets[4]!));
    assert.equal(begun.length, 4);
  });

  it('replaces a silent one, then the oldest, if one address has many that are not finished', async () => {
    const { open } = aScene();
    const sockets: FakeSocket[] = [];
    const openInTurn = async () => {
      sockets.push(open('a'));
      await nextTurn();
    };
    for (let count = 0; count < MAX_BEGUN_PER_ADDRESS; count++) await openInTurn();
    for (const socket of sockets) socket.bytesRead = 500;
    sockets[7]!.bytesRead = 0;
    await openInTurn();
    assert.deepEqual([sockets[0]!.destroyed, sockets[7]!.destroyed], [false, true]);
    sockets.at(-1)!.bytesRead = 500;
    await openInTurn();
    assert.equal(sockets[0]!.destroyed, true);
    assert.equal(countOpen(sockets), MAX_BEGUN_PER_ADDRESS);
  });

  it('replaces one of the address with the most if there are too many in all', async () => {
    const { open } = aScene();
    const sockets: FakeSocket[] = [];
    for (let count = 0; count < MAX_BEGUN; count++) {
      sockets.push(open(count % 5 === 0 ? 'few' : `many ${count % 2}`));
      await nextTurn();
    }
    sockets.push(open('new'));
    assert.equal(countOpen(sockets), MAX_BEGUN);
    assert.ok(sockets.every(({ destroyed, remoteAddress }) => !destroyed || remoteAddress.startsWith('many')));
  });

  it('does not count those that are finished', async () => {
    const { open, handshakes } = aScene();
    const sockets: FakeSocket[] = [];
    for (let count = 0; count < 2 * MAX_BEGUN; count++) {
      const socket = open('a');
      sockets.push(socket);
      await nextTurn();
      handshakes.finish(socket);
    }
    assert.equal(countOpen(sockets), 2 * MAX_BEGUN);
  });
});

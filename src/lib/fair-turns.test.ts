import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FairTurns, MAX_WAITING, SMALL_UNITS, UNITS_PER_TURN } from '#lib/fair-turns.ts';

const nextTurn = () => new Promise<void>((resolve) => void setImmediate(resolve));

/** Enters pieces and records the order and the turn in which they run. */
class Recorder {
  readonly ran: string[] = [];
  readonly turns = new FairTurns(() => 0);

  enter(user: string, units: number, name = user, source?: object): void {
    const entered = this.turns.enter(user, units, source);
    if (entered === undefined) this.ran.push(name);
    else if (entered !== 'full') void entered.then(() => this.ran.push(name));
    else this.ran.push(`${name} refused`);
  }
}

describe('FairTurns', () => {
  it('runs small pieces at once until the user has spent the units of a turn', async () => {
    const recorder = new Recorder();
    for (const name of ['a1', 'a2', 'a3']) recorder.enter('a', SMALL_UNITS / 2, name);
    assert.deepEqual(recorder.ran, ['a1', 'a2']);
    await nextTurn();
    assert.deepEqual(recorder.ran, ['a1', 'a2', 'a3']);
  });

  it('lets a user with nothing waiting run at once while another one waits', () => {
    const recorder = new Recorder();
    for (let i = 0; i < 10; i++) recorder.enter('flood', SMALL_UNITS, `f${i}`);
    recorder.enter('b', 1);
    assert.deepEqual(recorder.ran, ['f0', 'b']);
  });

  it('rotates between users that wait', async () => {
    const recorder = new Recorder();
    for (let i = 0; i < 4; i++) recorder.enter('a', SMALL_UNITS, `a${i}`);
    for (let i = 0; i < 2; i++) recorder.enter('b', SMALL_UNITS, `b${i}`);
    assert.deepEqual(recorder.ran, ['a0', 'b0']);
    await nextTurn();
    assert.deepEqual(recorder.ran, ['a0', 'b0', 'a1', 'b1']);
  });

  it('runs one large piece in a turn and small ones of others before the next', async () => {
    const recorder = new Recorder();
    for (let i = 0; i < 3; i++) recorder.enter('a', UNITS_PER_TURN, `a${i}`);
    assert.deepEqual(recorder.ran, []);
    await nextTurn();
    assert.deepEqual(recorder.ran, ['a0']);
    recorder.enter('b', 1);
    assert.deepEqual(recorder.ran, ['a0', 'b']);
    for (let i = 0; i < 10; i++) await nextTurn();
    assert.deepEqual(recorder.ran, ['a0', 'b', 'a1', 'a2']);
  });

  it('rests after a large piece that took long', async () => {
    let now = 0;
    const turns = new FairTurns(() => now);
    const ran: string[] = [];
    for (const name of ['first', 'second']) {
      const run = async () => {
        await turns.next('a', UNITS_PER_TURN);
        ran.push(name);
        now += 20;
      };
      void run();
    }
    for (let i = 0; i < 5; i++) await nextTurn();
    assert.deepEqual(ran, ['first']);
    await turns.next('a', UNITS_PER_TURN);
    assert.deepEqual(ran, ['first', 'second']);
  });

  it('refuses a user with too many pieces waiting, and nobody else', () => {
    const recorder = new Recorder();
    for (let i = 0; i <= MAX_WAITING + 1; i++) recorder.enter('a', SMALL_UNITS, `a${i}`);
    assert.deepEqual(recorder.ran, ['a0', `a${MAX_WAITING + 1} refused`]);
    recorder.enter('b', 1);
    assert.equal(recorder.ran.at(-1), 'b');
  });

  it('rotates between the sources of a user, and refuses only the one with too many pieces waiting', async () => {
    const recorder = new Recorder();
    const [flood, other] = [{}, {}];
    for (let i = 0; i <= MAX_WAITING + 1; i++) recorder.enter('a', SMALL_UNITS, `f${i}`, flood);
    recorder.enter('a', SMALL_UNITS, 'o', other);
    assert.deepEqual(recorder.ran, ['f0', `f${MAX_WAITING + 1} refused`]);
    await nextTurn();
    await nextTurn();
    assert.deepEqual(recorder.ran.slice(2, 5), ['f1', 'o', 'f2']);
  });
});

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { UnreadResponses } from '#engine/http/unread-responses.ts';

describe('UnreadResponses', () => {
  let now = 0;
  let unread: UnreadResponses;
  beforeEach(() => {
    now = 0;
    unread = new UnreadResponses(() => now);
  });
  afterEach(() => unread.stop());

  it('cuts a response that nobody reads, not one that makes progress', () => {
    const cut: string[] = [];
    let read = 0;
    unread.add(
      () => 0,
      () => cut.push('unread'),
    );
    unread.add(
      () => read,
      () => cut.push('slow'),
    );
    for (now = 10_000; now <= 60_000; now += 10_000) {
      read++;
      unread.sweep();
    }
    assert.deepEqual(cut, ['unread']);
    assert.equal(unread.size, 1);
  });

  it('forgets a response at its end', () => {
    const end = unread.add(
      () => 0,
      () => assert.fail('the response is over'),
    );
    end();
    now = 60_000;
    unread.sweep();
    assert.equal(unread.size, 0);
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pace } from '#controllers/protection/pace.ts';

test('a few times at once, then no more than that in any period', () => {
  const pace = new Pace({ times: 3, periodMs: 1000 });
  for (const now of [0, 100, 200]) {
    assert.equal(pace.waitMs(now), 0, `at ${now}`);
    pace.done(now);
  }
  assert.equal(pace.waitMs(200), 800);
  assert.equal(pace.waitMs(999), 1);
  assert.equal(pace.waitMs(1000), 0);
  pace.done(1000);
  assert.equal(pace.waitMs(1000), 100);
});

test('what may not wait is counted too', () => {
  const pace = new Pace({ times: 1, periodMs: 1000 });
  pace.done(0);
  pace.done(500);
  assert.equal(pace.waitMs(1000), 500);
});

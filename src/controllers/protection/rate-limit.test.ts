import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RateLimit } from '#controllers/protection/rate-limit.ts';

test('allows some writes at once, and no more than that in any period', () => {
  const pace = new RateLimit({ times: 3, periodMs: 1000 });
  for (const now of [0, 100, 200]) {
    assert.equal(pace.waitMs(now), 0, `at ${now}`);
    pace.record(now);
  }
  assert.equal(pace.waitMs(200), 800);
  assert.equal(pace.waitMs(999), 1);
  assert.equal(pace.waitMs(1000), 0);
  pace.record(1000);
  assert.equal(pace.waitMs(1000), 100);
});

test('counts writes that did not wait', () => {
  const pace = new RateLimit({ times: 1, periodMs: 1000 });
  pace.record(0);
  pace.record(500);
  assert.equal(pace.waitMs(1000), 500);
});

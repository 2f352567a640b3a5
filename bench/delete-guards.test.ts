import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reviewDelete, GUARDED_KINDS, PROTECTED, registrations } from './delete-guards.ts';

const review = (labels: Record<string, string> | undefined) => ({
  request: { uid: 'u-1', oldObject: { metadata: { name: 'probe', labels } } },
});

const cases: Record<string, { labels: Record<string, string> | undefined; allowed: boolean }> = {
  'the webhook refuses to delete a protected object': { labels: PROTECTED, allowed: false },
  'the webhook allows to delete an object with another value of the label': {
    labels: GUARDED_KINDS.none.labels,
    allowed: true,
  },
  'the webhook allows to delete an object without labels': { labels: undefined, allowed: true },
};
for (const [what, { labels, allowed }] of Object.entries(cases)) {
  test(what, () => {
    const { response } = reviewDelete(review(labels)) as { response: { uid: string; allowed: boolean } };
    assert.deepEqual([response.uid, response.allowed], ['u-1', allowed]);
  });
}

test('each guard guards its own kind, and one kind has no guard', () => {
  const guarded = JSON.stringify(registrations({ port: 1, ca: 'PEM' }));
  for (const [guard, { plural }] of Object.entries(GUARDED_KINDS)) {
    assert.equal(guarded.split(`"resources":["${plural}"]`).length - 1, guard === 'none' ? 0 : 1, guard);
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerReview, GUARDED_KINDS, PROTECTED, registrations } from './delete-guards.ts';

const review = (labels: Record<string, string> | undefined) => ({
  request: { uid: 'u-1', oldObject: { metadata: { name: 'probe', labels } } },
});

const cases: Record<string, { labels: Record<string, string> | undefined; allowed: boolean }> = {
  'a webhook refuses to delete what is protected': { labels: PROTECTED, allowed: false },
  'a webhook lets go of what is labelled otherwise': { labels: GUARDED_KINDS.nobody.labels, allowed: true },
  'a webhook lets go of what has no labels': { labels: undefined, allowed: true },
};
for (const [what, { labels, allowed }] of Object.entries(cases)) {
  test(what, () => {
    const { response } = answerReview(review(labels)) as { response: { uid: string; allowed: boolean } };
    assert.deepEqual([response.uid, response.allowed], ['u-1', allowed]);
  });
}

test('each guard watches its own kind, and nobody watches the one that is left open', () => {
  const guarded = JSON.stringify(registrations({ port: 1, ca: 'PEM' }));
  for (const [guard, { plural }] of Object.entries(GUARDED_KINDS)) {
    assert.equal(guarded.split(`"resources":["${plural}"]`).length - 1, guard === 'nobody' ? 0 : 1, guard);
  }
});

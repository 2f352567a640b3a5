/** A pod that was bound but not yet seen by an agent: what the server wrote must be valid for every later write. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { startTestApi } from '#test/support/test-api.ts';

const PODS = '/api/v1/namespaces/default/pods';

it('a bound pod can be patched like any other', async (t) => {
  const api = await startTestApi();
  t.after(() => api.stop());
  await api.settle();
  await api.ok('POST', PODS, {
    body: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'i' }] } },
  });
  await api.ok('POST', `${PODS}/p/binding`, {
    body: { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'p' }, target: { kind: 'Node', name: 'n' } },
  });
  const patched = await api.call('PATCH', `${PODS}/p`, {
    contentType: 'application/merge-patch+json',
    body: { metadata: { labels: { a: 'b' } } },
  });
  assert.equal(patched.status, 200, patched.text);
  assert.equal(patched.body.status.conditions[0].type, 'PodScheduled');
});

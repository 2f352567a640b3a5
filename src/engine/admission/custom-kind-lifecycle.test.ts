import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { AdmissionAttributes, AdmissionOperation } from '#engine/admission/admission.ts';
import { customKindLifecycle } from '#engine/admission/custom-kind-lifecycle.ts';
import { CRD_COLLECTION } from '#engine/registry/crd/definition.ts';
import { gadgetCrd, installGadgets } from '#test/support/gadgets.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;

before(async () => {
  api = await startTestApi();
  await installGadgets(api);
  await api.settle();
});
after(() => api.stop());

const NAME = 'gadgets.golden.local';

/** Rewrites the definition and runs the guard while that write is in flight. */
async function guardDuringChange(operation: AdmissionOperation, change: (crd: Loose) => void): Promise<void> {
  const { store, core } = api;
  const { resource } = core.registry.find('golden.local', 'v1', 'gadgets')!;
  const known = store.get(CRD_COLLECTION, NAME)!;
  const crd: Loose = JSON.parse(known.bytes.toString());
  change(crd);
  const bytes = Buffer.from(JSON.stringify(crd));
  const writing = store.put({ collection: CRD_COLLECTION, id: NAME, expected: known.revision, encode: () => bytes });
  try {
    const asked = { operation, resource, name: 'a' } as AdmissionAttributes;
    customKindLifecycle(store, core.registry)(asked);
  } finally {
    await writing;
  }
}

test('the test uses the served definition', () => assert.equal(gadgetCrd().metadata.name, NAME));

for (const operation of ['CREATE', 'UPDATE', 'DELETE'] as const) {
  test(`writes are refused while the definition changes: ${operation}`, async () => {
    const changing = guardDuringChange(operation, (crd) => crd.metadata.generation++);
    await assert.rejects(changing, /the definition of its kind has changed; please try again/);
  });
}

test('a status change of a definition does not block writes', async () => {
  await guardDuringChange('UPDATE', (crd) => (crd.status.conditions = crd.status.conditions.toReversed()));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anAdmission } from '#engine/admission/matching/testing/attributes.ts';
import { BINDING_COLLECTION, POLICY_COLLECTION } from '#engine/admission/policies/policy-spec.ts';
import { validatingPolicies } from '#engine/admission/policies/validating-policies.ts';
import { encodeJson } from '#engine/encoding/media-types.ts';
import { builtInResources } from '#engine/registry/kinds/all.ts';
import { Registry } from '#engine/registry/registry.ts';
import { openMemoryStore } from '#engine/store/testing/memory-store.ts';
import { silentLog } from '#lib/log.ts';

/** Counts lookups of equivalent versions, which happen when a match is computed. */
class CountingRegistry extends Registry {
  reads = 0;
  override get resources() {
    this.reads++;
    return super.resources;
  }
}

const RULES = [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }];

test('the match of policies and bindings is computed once, not for each request', async () => {
  const store = await openMemoryStore();
  const put = (collection: string, name: string, spec: object) =>
    store.put({
      collection,
      id: name,
      expected: 0,
      encode: () => encodeJson({ apiVersion: 'v1', kind: 'X', metadata: { name }, spec }),
    });
  await put(POLICY_COLLECTION, 'p', {
    matchConstraints: { resourceRules: RULES },
    validations: [{ expression: 'false', message: 'no' }],
  });
  const bound = { policyName: 'p', validationActions: ['Warn'] };
  await put(BINDING_COLLECTION, 'everywhere', bound);
  await put(BINDING_COLLECTION, 'here', { ...bound, matchResources: { resourceRules: RULES } });
  await put(BINDING_COLLECTION, 'named', {
    ...bound,
    matchResources: { resourceRules: [{ ...RULES[0], resourceNames: ['other'] }] },
  });

  const registry = new CountingRegistry(builtInResources);
  const authorizer = { authorize: () => ({ allowed: true }) };
  const policies = validatingPolicies({ store, registry, authorizer, log: silentLog });
  const evaluate = async () => {
    const attributes = anAdmission();
    await policies.step(attributes);
    return attributes.noted.warnings.map((warning) => /binding '(\w+)'/.exec(warning)?.[1]);
  };
  assert.deepEqual(await evaluate(), ['everywhere', 'here']);
  const { reads } = registry;
  assert.deepEqual(await evaluate(), ['everywhere', 'here']);
  assert.equal(registry.reads, reads);

  registry.setCustom([]);
  assert.deepEqual(await evaluate(), ['everywhere', 'here']);
  assert.ok(registry.reads > reads, 'changed kinds must be computed again');
  policies.stop();
  await store.close();
});

/** Tests the uuid of VMs that were stored without one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import {
  isNewerThanAdmission,
  UUID_ADMISSION_ANNOTATION,
  uuidAdmissionSince,
  deriveMissingUuid,
} from '#api/identity/uuid-admission.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { Stored } from '#kube/meta.ts';

const SINCE = '2026-01-01T12:00:00Z';
const V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function aVm(creationTimestamp: string, uid = 'u1'): Stored<VirtualMachine> {
  const metadata = { name: 'db', namespace: 'ns', uid, resourceVersion: '1', creationTimestamp };
  return { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata, spec: { template: {} } };
}

const ages: Record<string, { created: string; since?: string; isNewer: boolean }> = {
  'an older VM': { created: '2026-01-01T11:59:59Z', since: SINCE, isNewer: false },
  'a VM of the same second': { created: SINCE, since: SINCE, isNewer: true },
  'a newer VM': { created: '2026-01-01T12:00:01Z', since: SINCE, isNewer: true },
  'a VM without a known start of uuid admission': { created: SINCE, isNewer: false },
  'a VM with an invalid start of uuid admission': { created: SINCE, since: 'yesterday', isNewer: false },
  'a VM without a creation time': { created: '', since: SINCE, isNewer: false },
};

for (const [name, { created, since, isNewer }] of Object.entries(ages)) {
  test(`${name} gets a ${isNewer ? 'random uuid' : 'legacy uuid'}`, () => {
    const vm = aVm(created);
    assert.equal(isNewerThanAdmission(vm, since), isNewer);
    if (isNewer) assert.match(deriveMissingUuid(vm, since), V4);
    else assert.equal(deriveMissingUuid(vm, since), legacyUuid('db'));
  });
}

test('a random uuid is always the same for one VM, and differs for another VM of the same name', () => {
  assert.equal(deriveMissingUuid(aVm(SINCE), SINCE), deriveMissingUuid(aVm(SINCE), SINCE));
  assert.notEqual(deriveMissingUuid(aVm(SINCE), SINCE), deriveMissingUuid(aVm(SINCE, 'u2'), SINCE));
});

test('the start of uuid admission is read from the definition', () => {
  const metadata = { name: 'virtualmachines.kubevirt.io', annotations: { [UUID_ADMISSION_ANNOTATION]: SINCE } };
  assert.equal(uuidAdmissionSince({ metadata }), SINCE);
  assert.equal(uuidAdmissionSince({ metadata: { name: 'x' } }), undefined);
  assert.equal(uuidAdmissionSince(undefined), undefined);
});

/** Which uuid a VM gets that was stored without one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { legacyUuid } from '#api/legacy-uuid.ts';
import {
  isYoungerThanAdmission,
  UUID_ADMISSION_ANNOTATION,
  uuidAdmissionSince,
  uuidOfUnseen,
} from '#api/uuid-admission.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { Stored } from '#kube/meta.ts';

const SINCE = '2026-01-01T12:00:00Z';
const V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function aVm(creationTimestamp: string, uid = 'u1'): Stored<VirtualMachine> {
  const metadata = { name: 'db', namespace: 'ns', uid, resourceVersion: '1', creationTimestamp };
  return { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata, spec: { template: {} } };
}

const ages: Record<string, { created: string; since?: string; isYounger: boolean }> = {
  'an older VM': { created: '2026-01-01T11:59:59Z', since: SINCE, isYounger: false },
  'a VM of the same second': { created: SINCE, since: SINCE, isYounger: true },
  'a younger VM': { created: '2026-01-01T12:00:01Z', since: SINCE, isYounger: true },
  'a VM where no stamp is known': { created: SINCE, isYounger: false },
  'a VM where the stamp cannot be read': { created: SINCE, since: 'yesterday', isYounger: false },
  'a VM without a time': { created: '', since: SINCE, isYounger: false },
};

for (const [name, { created, since, isYounger }] of Object.entries(ages)) {
  test(`${name} gets a ${isYounger ? 'random uuid' : 'uuid of its name'}`, () => {
    const vm = aVm(created);
    assert.equal(isYoungerThanAdmission(vm, since), isYounger);
    if (isYounger) assert.match(uuidOfUnseen(vm, since), V4);
    else assert.equal(uuidOfUnseen(vm, since), legacyUuid('db'));
  });
}

test('a random uuid is the same each time for one VM, and another one for another VM of the name', () => {
  assert.equal(uuidOfUnseen(aVm(SINCE), SINCE), uuidOfUnseen(aVm(SINCE), SINCE));
  assert.notEqual(uuidOfUnseen(aVm(SINCE), SINCE), uuidOfUnseen(aVm(SINCE, 'u2'), SINCE));
});

test('the stamp is read from the definition', () => {
  const metadata = { name: 'virtualmachines.kubevirt.io', annotations: { [UUID_ADMISSION_ANNOTATION]: SINCE } };
  assert.equal(uuidAdmissionSince({ metadata }), SINCE);
  assert.equal(uuidAdmissionSince({ metadata: { name: 'x' } }), undefined);
  assert.equal(uuidAdmissionSince(undefined), undefined);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkProtectionReason, protectionWarnings } from '#api/validation/delete-protection.ts';
import { aVm } from '#api/validation/testing/valid-objects.ts';

const LABEL = 'kubevirt.io/vm-delete-protection';
const REASON = 'selfsame.io/delete-protection-reason';
const aVmWithLabel = (value: string | undefined) =>
  aVm({ metadata: { labels: value === undefined ? {} : { [LABEL]: value } } });
const aVmWithReason = (reason: string) => aVm({ metadata: { annotations: { [REASON]: reason } } });

for (const value of ['TRUE', 'tRue', 'yes', 'Yes', 'y', '1', 'on', 'ON', 'enabled', 'enable', 'protected', 'T']) {
  const want = [`label ${LABEL}: "${value}" does not protect the VirtualMachine; only "true" and "True" do`];
  test(`warns once when the label is set to "${value}"`, () => {
    assert.deepEqual(protectionWarnings(aVmWithLabel(value), undefined), want);
    assert.deepEqual(protectionWarnings(aVmWithLabel(value), aVmWithLabel(undefined)), want);
    assert.deepEqual(protectionWarnings(aVmWithLabel(value), aVmWithLabel('true')), want);
    assert.deepEqual(protectionWarnings(aVmWithLabel(value), aVmWithLabel(value)), [], 'no second warning');
  });
}

for (const value of ['true', 'True', 'false', 'False', '', 'niceValue', 'no', 'off', '0', undefined]) {
  test(`does not warn about "${value}"`, () => {
    assert.deepEqual(protectionWarnings(aVmWithLabel(value), aVmWithLabel('yes')), []);
    assert.deepEqual(protectionWarnings(aVmWithLabel(value), undefined), []);
  });
}

test('refuses a reason of more than 1024 characters', () => {
  assert.deepEqual(checkProtectionReason(aVm(), undefined), []);
  assert.deepEqual(checkProtectionReason(aVmWithReason('x'.repeat(1024)), undefined), []);
  const [error, ...more] = checkProtectionReason(aVmWithReason('x'.repeat(1025)), aVmWithReason('x'));
  assert.deepEqual(more, []);
  assert.equal(error?.field, `metadata.annotations[${REASON}]`);
  assert.equal(
    error.message,
    'Invalid value: "xxxxxxxxxxxxxxxxxxxx…": must have at most 1024 characters, but has 1025',
  );
});

test('a stored reason that is too long does not prevent other changes', () => {
  const vm = aVmWithReason('x'.repeat(2000));
  assert.deepEqual(checkProtectionReason(vm, vm), []);
});

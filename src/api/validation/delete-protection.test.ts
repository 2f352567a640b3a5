import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkProtectionReason, protectionWarnings } from '#api/validation/delete-protection.ts';
import { aVm } from '#api/validation/testing/valid-objects.ts';

const LABEL = 'kubevirt.io/vm-delete-protection';
const REASON = 'selfsame.io/delete-protection-reason';
const labelled = (value: string | undefined) =>
  aVm({ metadata: { labels: value === undefined ? {} : { [LABEL]: value } } });
const explained = (reason: string) => aVm({ metadata: { annotations: { [REASON]: reason } } });

for (const value of ['TRUE', 'tRue', 'yes', 'Yes', 'y', '1', 'on', 'ON', 'enabled', 'enable', 'protected', 'T']) {
  const want = [`label ${LABEL}: "${value}" does not protect the VirtualMachine; only "true" and "True" do`];
  test(`"${value}" is warned of when it is set`, () => {
    assert.deepEqual(protectionWarnings(labelled(value), undefined), want);
    assert.deepEqual(protectionWarnings(labelled(value), labelled(undefined)), want);
    assert.deepEqual(protectionWarnings(labelled(value), labelled('true')), want);
    assert.deepEqual(protectionWarnings(labelled(value), labelled(value)), [], 'but not again');
  });
}

for (const value of ['true', 'True', 'false', 'False', '', 'niceValue', 'no', 'off', '0', undefined]) {
  test(`"${value}" is not warned of`, () => {
    assert.deepEqual(protectionWarnings(labelled(value), labelled('yes')), []);
    assert.deepEqual(protectionWarnings(labelled(value), undefined), []);
  });
}

test('a reason may be long, but not too long', () => {
  assert.deepEqual(checkProtectionReason(aVm(), undefined), []);
  assert.deepEqual(checkProtectionReason(explained('x'.repeat(1024)), undefined), []);
  const [error, ...more] = checkProtectionReason(explained('x'.repeat(1025)), explained('x'));
  assert.deepEqual(more, []);
  assert.equal(error?.field, `metadata.annotations[${REASON}]`);
  assert.equal(
    error.message,
    'Invalid value: "xxxxxxxxxxxxxxxxxxxx…": must have at most 1024 characters, but has 1025',
  );
});

test('one that is too long already keeps nobody from changing something else', () => {
  const vm = explained('x'.repeat(2000));
  assert.deepEqual(checkProtectionReason(vm, vm), []);
});

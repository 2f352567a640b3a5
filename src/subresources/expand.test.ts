import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseVm } from '#subresources/expand.ts';

const aVm = (more: object = {}) => JSON.stringify({ metadata: { name: 'db' }, spec: { template: {} }, ...more });

test('a VM is returned unchanged, with kind and apiVersion', () => {
  const vm = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata: { name: 'db' }, spec: { template: {} } };
  assert.deepEqual(parseVm(aVm(), 'lab'), vm);
  assert.deepEqual(parseVm(aVm({ metadata: { name: 'db', namespace: 'lab' } }), 'lab').metadata.namespace, 'lab');
});

const refused: Record<string, { body: string; message: RegExp }> = {
  'text that is not JSON': {
    body: 'kind: VirtualMachine',
    message: /^Can not unmarshal Request body to struct, error: /,
  },
  'a value that is not a VM': { body: '[]', message: /^Object is not a valid VirtualMachine$/ },
  'another kind': { body: aVm({ kind: 'Pod' }), message: /it is a "Pod"/ },
  'a VM of another namespace': {
    body: aVm({ metadata: { namespace: 'shop' } }),
    message: /^VM namespace must be empty or "lab", not "shop"$/,
  },
  'an instance type': {
    body: aVm({ spec: { instancetype: { name: 'u1' } } }),
    message: /^spec\.instancetype: is not supported/,
  },
  'a preference': {
    body: aVm({ spec: { preference: { name: 'fedora' } } }),
    message: /^spec\.preference: is not supported/,
  },
};
for (const [title, { body, message }] of Object.entries(refused)) {
  test(`refuses ${title}`, () => assert.throws(() => parseVm(body, 'lab'), { name: 'ApiError', code: 400, message }));
}

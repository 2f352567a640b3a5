import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kvmGroup, kvmWorks, type KvmFacts } from './accelerator.ts';

const works: KvmFacts = {
  opens: true,
  cpuinfo: 'processor\t: 0\nflags\t\t: fpu vmx sse\n',
  device: { mode: 0o20660, uid: 0, gid: 106 },
  user: { uid: 64_055, gid: 64_055 },
};

const cases: Record<string, [Partial<KvmFacts>, boolean]> = {
  'where the device opens and the processor can': [{}, true],
  'on AMD too': [{ cpuinfo: 'flags : svm\n' }, true],
  'not where the device does not open': [{ opens: false }, false],
  'not where there is no device': [{ device: undefined }, false],
  'not where the processor cannot: guests hang there': [{ cpuinfo: 'flags : fpu sse\n' }, false],
  'not for a flag of another line': [{ cpuinfo: 'model name : vmx\nflags : fpu\n' }, false],
  'not for half a flag': [{ cpuinfo: 'flags : vmxoff\n' }, false],
  'not where the user of the guests may not': [{ device: { mode: 0o20600, uid: 0, gid: 0 } }, false],
  'not through the group of root': [{ device: { mode: 0o20660, uid: 0, gid: 0 } }, false],
  'where everybody may': [{ device: { mode: 0o20666, uid: 0, gid: 0 } }, true],
  'as ourselves': [{ device: { mode: 0o20600, uid: 0, gid: 0 }, user: undefined }, true],
};

for (const [name, [facts, want]] of Object.entries(cases)) {
  test(`kvm is used ${name}`, () => assert.equal(kvmWorks({ ...works, ...facts }), want));
}

test('guests get the group of the device, never that of root', () => {
  assert.equal(kvmGroup({ mode: 0o20660, gid: 106 }), 106);
  assert.equal(kvmGroup({ mode: 0o20640, gid: 106 }), undefined);
  assert.equal(kvmGroup({ mode: 0o20660, gid: 0 }), undefined);
});

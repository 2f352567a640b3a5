import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kvmGroup, isKvmUsable, type KvmFacts } from '#node/hypervisor/qemu/process/accelerator.ts';

const works: KvmFacts = {
  canOpen: true,
  cpuinfo: 'processor\t: 0\nflags\t\t: fpu vmx sse\n',
  device: { mode: 0o20660, uid: 0, gid: 106 },
  asOtherUser: true,
};

const cases: Record<string, [Partial<KvmFacts>, boolean]> = {
  'if the device opens and the processor supports it': [{}, true],
  'on AMD': [{ cpuinfo: 'flags : svm\n' }, true],
  'not if the device cannot be opened': [{ canOpen: false }, false],
  'not if there is no device': [{ device: undefined }, false],
  'not without processor support, because guests would hang': [{ cpuinfo: 'flags : fpu sse\n' }, false],
  'not for a flag on another line': [{ cpuinfo: 'model name : vmx\nflags : fpu\n' }, false],
  'not for a flag that only begins the same': [{ cpuinfo: 'flags : vmxoff\n' }, false],
  'not if the guests’ user has no access': [{ device: { mode: 0o20600, uid: 0, gid: 0 } }, false],
  'not through root’s group': [{ device: { mode: 0o20660, uid: 0, gid: 0 } }, false],
  'if all users have access': [{ device: { mode: 0o20666, uid: 0, gid: 0 } }, true],
  'if QEMU runs as our own user': [{ device: { mode: 0o20600, uid: 0, gid: 0 }, asOtherUser: false }, true],
};

for (const [name, [facts, want]] of Object.entries(cases)) {
  test(`kvm is used ${name}`, () => assert.equal(isKvmUsable({ ...works, ...facts }), want));
}

test('guests get the group of the device, but never root’s', () => {
  assert.equal(kvmGroup({ mode: 0o20660, gid: 106 }), 106);
  assert.equal(kvmGroup({ mode: 0o20640, gid: 106 }), undefined);
  assert.equal(kvmGroup({ mode: 0o20660, gid: 0 }), undefined);
});

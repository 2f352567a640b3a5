/** The conditions under which devices are plugged, and how the change is written and reported. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { concludeVm, decideVm } from '#controllers/vm/decide-vm.ts';
import { planHotplug } from '#controllers/vm/hotplug/hotplug.ts';
import { requiresRestart } from '#controllers/vm/hotplug/restart-required.ts';
import {
  claimDisk,
  nic,
  template,
  type Scene,
  worldOf,
  afterHotplug,
  describeDevices,
  root,
  ROOT,
} from '#controllers/vm/hotplug/testing/hotplug-scene.ts';
import { aVm, aVmi, DELETED } from '#controllers/vm/testing/vm-world.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';

test('a write requires the lists that were read', () => {
  const { vmi, ...world } = worldOf({
    runs: [root],
    template: [root, claimDisk('a'), nic('n', { macAddress: '02:00:00:00:00:01' })],
  });
  const [change] = planHotplug({ ...world, vmi })?.changes ?? [];
  assert.ok(vmi !== undefined && change?.do === 'patch');
  const { body } = change.patch;
  const { devices } = vmi.spec.domain;
  const others = {
    volumes: { ...vmi.spec, volumes: [] },
    networks: { ...vmi.spec, networks: [{ name: 'x', pod: {} }] },
    disks: { ...vmi.spec, domain: { ...vmi.spec.domain, devices: { ...devices, disks: [] } } },
    interfaces: { ...vmi.spec, domain: { ...vmi.spec.domain, devices: { ...devices, interfaces: [{ name: 'x' }] } } },
  };
  assert.doesNotThrow(() => applyJsonPatch(vmi, body));
  for (const spec of Object.values(others)) assert.throws(() => applyJsonPatch({ ...vmi, spec }, body), /test/i);
});

const asked: Scene = { runs: [root], template: [root, claimDisk('a')] };
const worlds: Record<string, VmWorld> = {
  'while the VM is held': worldOf(asked, { lock: { kind: 'snapshot', name: 'nightly' } }),
  'into an instance under deletion': worldOf(asked, {
    vmi: aVmi('Running', { vm: aVm({ template: template([root]) }), metadata: { ...DELETED, finalizers: [] } }),
  }),
  'before the guest runs': worldOf(asked, { vmi: aVmi('Scheduled', { vm: aVm({ template: template([root]) }) }) }),
  'after its end': worldOf(asked, { vmi: aVmi('Succeeded', { vm: aVm({ template: template([root]) }) }) }),
  'without an instance': worldOf(asked, { vmi: undefined }),
};
for (const [name, world] of Object.entries(worlds)) {
  test(`nothing is plugged ${name}, and no restart is required`, () => {
    assert.equal(planHotplug(world), undefined);
    assert.equal(requiresRestart(world), false);
  });
}

test('a change that hotplug cannot apply still needs a restart', () => {
  const world = worldOf(asked);
  const vm = aVm({ template: template(asked.template, 2) });
  assert.equal(requiresRestart({ ...world, vm }), true);
  assert.equal(describeDevices(afterHotplug({ ...world, vm })), `${ROOT} a:a-claim`);
});

test('decideVm plans hotplug, and concludeVm reports its failure', () => {
  const world = worldOf(asked);
  const { changes, continueOnError } = decideVm(world);
  const [change] = changes;
  assert.ok(change !== undefined && continueOnError === true);
  const status = concludeVm(world, [{ change, error: new Error('no room') }]);
  const conditions = (status?.['conditions'] ?? []) as { type: string; reason?: string; message?: string }[];
  const failure = conditions.find(({ type }) => type === 'Failure');
  assert.deepEqual(
    [failure?.reason, failure?.message],
    ['FailedHotplug', 'Failure while changing the devices of the running VMI: no room'],
  );
});

/** When devices are plugged at all, and how that is written and told. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { concludeVm, decideVm } from '#controllers/vm/decide-vm.ts';
import { hotplug } from '#controllers/vm/hotplug.ts';
import { restartRequired } from '#controllers/vm/restart-required.ts';
import {
  data,
  nic,
  template,
  type Scene,
  worldOf,
  after,
  shown,
  root,
  ROOT,
} from '#controllers/vm/testing/hotplug-scene.ts';
import { aVm, aVmi, DELETED } from '#controllers/vm/vm-world.fixture.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { applyJsonPatch } from '#kube/json-patch.ts';

test('a write is only made on the lists that were read', () => {
  const { vmi, ...world } = worldOf({
    runs: [root],
    template: [root, data('a'), nic('n', { macAddress: '02:00:00:00:00:01' })],
  });
  const [change] = hotplug({ ...world, vmi })?.changes ?? [];
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

const asked: Scene = { runs: [root], template: [root, data('a')] };
const moments: Record<string, VmWorld> = {
  'while the VM is held': worldOf(asked, { lock: { kind: 'snapshot', name: 'nightly' } }),
  'of an instance that is being deleted': worldOf(asked, {
    vmi: aVmi('Running', { vm: aVm({ template: template([root]) }), metadata: { ...DELETED, finalizers: [] } }),
  }),
  'before the guest runs': worldOf(asked, { vmi: aVmi('Scheduled', { vm: aVm({ template: template([root]) }) }) }),
  'after its end': worldOf(asked, { vmi: aVmi('Succeeded', { vm: aVm({ template: template([root]) }) }) }),
  'without an instance': worldOf(asked, { vmi: undefined }),
};
for (const [name, world] of Object.entries(moments)) {
  test(`nothing is plugged ${name}, nor is that a reason to restart`, () => {
    assert.equal(hotplug(world), undefined);
    assert.equal(restartRequired(world), false);
  });
}

test('what else has changed still waits for a restart', () => {
  const world = worldOf(asked);
  const vm = aVm({ template: template(asked.template, 2) });
  assert.equal(restartRequired({ ...world, vm }), true);
  assert.equal(shown(after({ ...world, vm })), `${ROOT} a:a-claim`);
});

test('it is one of the rules, and what keeps it from being done is told', () => {
  const world = worldOf(asked);
  const { changes, goOn } = decideVm(world);
  const [change] = changes;
  assert.ok(change !== undefined && goOn === true);
  const status = concludeVm(world, [{ change, error: new Error('no room') }]);
  const conditions = (status?.['conditions'] ?? []) as { type: string; reason?: string; message?: string }[];
  const failure = conditions.find(({ type }) => type === 'Failure');
  assert.deepEqual(
    [failure?.reason, failure?.message],
    ['FailedHotplug', 'Failure while changing the devices of the running VMI: no room'],
  );
});

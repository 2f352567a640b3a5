import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeMissingDefinition } from '#api/network/missing-definition.ts';
import { decideVm } from '#controllers/vm/decide-vm.ts';
import { definitionKeysOf, findMissingNetworks } from '#controllers/vm/missing-networks.ts';
import { aVm, aVmi, aWorld } from '#controllers/vm/testing/vm-world.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';

const TYPE = 'NetworkDefinitionMissing';

const vmOn = (networkNames: readonly string[], { state, status }: { state?: 'absent'; status?: VmStatus } = {}) => {
  const names = networkNames.map((_, i) => `nic${i}`);
  const interfaces = names.map((name) => ({ name, bridge: {}, ...(state && { state }) }));
  const networks = names.map((name, i) => ({ name, multus: { networkName: networkNames[i] ?? '' } }));
  const { domain } = aVm().spec.template.spec!;
  return aVm({ template: { domain: { ...domain, devices: { interfaces } }, networks }, ...(status && { status }) });
};

const cases: Record<string, { names: string[]; state?: 'absent'; present?: string[]; missing: string[] }> = {
  'a definition of the own namespace': { names: ['lan'], present: ['ns/lan'], missing: [] },
  'a definition of the shared namespace': { names: ['lan'], present: ['default/lan'], missing: [] },
  'a definition of another namespace': { names: ['lan'], present: ['other/lan'], missing: ['lan'] },
  'a name with the shared namespace, and a definition in the own one': {
    names: ['default/lan'],
    present: ['ns/lan'],
    missing: ['default/lan'],
  },
  'a namespace that the VM may not use': { names: ['other/lan'], present: ['other/lan'], missing: ['other/lan'] },
  'two interfaces on one network': { names: ['lan', 'lan'], missing: ['lan'] },
  'an unplugged interface': { names: ['lan'], state: 'absent', missing: [] },
};

for (const [name, { names, state, present = [], missing }] of Object.entries(cases)) {
  test(`missing networks: ${name}`, () => {
    const vm = vmOn(names, { ...(state && { state }) });
    assert.deepEqual(
      findMissingNetworks(vm, (key) => present.includes(key)),
      missing,
    );
    const keys = definitionKeysOf(vm);
    for (const key of present.filter((one) => missing.length === 0 && one !== '')) assert.ok(keys.includes(key));
  });
}

const conditionIn = (status: unknown) =>
  ((status as VmStatus).conditions ?? []).find(({ type }) => type === TYPE) as { message?: string } | undefined;

test('a running VM reports its missing definitions, with an Event the first time', () => {
  const vm = vmOn(['br0', 'br1']);
  const world = aWorld({ vm, vmi: aVmi('Running', { vm }), missingNetworks: ['br0', 'br1'] });
  const plan = decideVm(world);
  const message = ['br0', 'br1'].map((name) => describeMissingDefinition(name, 'ns')).join(' ');
  assert.equal(conditionIn(plan.status)?.message, message);
  assert.deepEqual(
    plan.events?.filter(({ reason }) => reason === TYPE),
    [{ type: 'Warning', reason: TYPE, message }],
  );

  const reported = vmOn(['br0', 'br1'], { status: plan.status as VmStatus });
  const again = decideVm({ ...world, vm: reported });
  assert.deepEqual(
    again.events?.filter(({ reason }) => reason === TYPE),
    [],
  );
  const without = decideVm({ ...world, vm: reported, missingNetworks: [] });
  assert.equal(conditionIn(without.status), undefined);
});

test('a condition describes three networks', () => {
  const names = ['a', 'b', 'c', 'd'];
  const vm = vmOn(names);
  const plan = decideVm(aWorld({ vm, vmi: aVmi('Running', { vm }), missingNetworks: names }));
  const text = conditionIn(plan.status)?.message ?? '';
  assert.match(text, /"ns\/c".* Others are missing, too\.$/s);
  assert.doesNotMatch(text, /"ns\/d"/);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { selectVm, type SelectContext, type VmSelection } from '#api/machine-types/select-vm.ts';
import type { TransitionOptions } from '#api/machine-types/options.ts';
import {
  aVm,
  aVmi,
  options,
  type VmiOverrides,
  type VmOverrides,
} from '#api/machine-types/testing/sample-transition.ts';

const OLD = 'pc-q35-rhel8.2.0';
const NEW = 'pc-q35-rhel9.2.0';

interface Case {
  readonly vm?: VmOverrides;
  readonly vmi?: VmiOverrides;
  readonly options?: Partial<TransitionOptions>;
  readonly context?: Partial<SelectContext>;
  readonly want?: VmSelection;
}

const CLEAR: VmSelection = { act: 'clear', from: OLD, to: NEW };
const MARK: VmSelection = { act: 'mark', from: OLD };
const alias = { vm: { type: 'q35' }, vmi: { type: 'q35', runs: OLD } };
const untyped = { vm: { type: undefined } };
const TARGET = { target: 'pc-q35-rhel9.0.0' };
const CURRENT_TYPES = { canonical: (type: string) => (type === 'q35' ? NEW : undefined) };

const cases: Record<string, Case> = {
  'a stopped VM with an old type': { want: CLEAR },
  'a running VM with an old type': { vmi: {}, want: CLEAR },
  'a VM with a newer type': { vm: { type: NEW }, vmi: { type: NEW } },
  'a glob with a dash': { options: { glob: '*rhel-8.*' }, want: CLEAR },
  'a VM with an old type, and a target': { options: TARGET, want: { act: 'set', from: OLD, to: TARGET.target } },

  'a target that is an alias, with the type it resolves to': {
    options: { target: 'q35' },
    context: CURRENT_TYPES,
    want: { act: 'set', from: OLD, to: 'q35', gives: NEW },
  },
  'an alias whose guest has an old type': { ...alias, want: MARK },
  'an alias whose guest has a new type': { vm: { type: 'q35' }, vmi: { type: 'q35', runs: NEW } },
  'an alias of a stopped VM': { vm: { type: 'q35' } },
  'an alias whose guest has no known type yet': { vm: { type: 'q35' }, vmi: { type: 'q35', status: { machine: {} } } },
  'an alias whose guest has an old type, and a target': {
    ...alias,
    options: TARGET,
    want: { act: 'set', from: 'q35', to: TARGET.target },
  },
  'an alias that is the target, with a guest of an old type': { ...alias, options: { target: 'q35' }, want: MARK },
  'an alias that still resolves to the type of the guest': {
    ...alias,
    context: { canonical: () => OLD },
  },
  'an alias that resolves to a matching type, with a guest of an older type': {
    ...alias,
    context: { canonical: () => 'pc-q35-rhel8.6.0' },
    want: MARK,
  },
  'an alias that resolves to a matching type, which the guest has': {
    vm: { type: 'q35' },
    vmi: { type: 'q35', runs: 'pc-q35-rhel8.6.0' },
    context: { canonical: () => 'pc-q35-rhel8.6.0' },
  },
  'a spec that was changed while the guest runs': { vm: { type: NEW }, vmi: {}, want: MARK },
  'a spec that was changed while the guest runs, and a target': {
    vm: { type: NEW },
    vmi: {},
    options: TARGET,
    want: MARK,
  },

  'no type, with a guest of an old type': { ...untyped, vmi: {}, want: MARK },
  'a null type, with a guest of an old type': { vm: { type: null }, vmi: {}, want: MARK },
  'an empty type, with a guest of an old type': { vm: { type: '' }, vmi: {}, want: MARK },
  'no type, and a glob that matches everything': { ...untyped, options: { glob: '*' } },
  'no type, and no guest': untyped,
  'no type, with a guest of the default type': { ...untyped, vmi: {}, context: { defaultType: OLD } },
  'no type, an old default and a target': {
    ...untyped,
    options: TARGET,
    context: { defaultType: OLD },
    want: { act: 'set', from: '', to: TARGET.target },
  },
  'no type, with a guest of an old type, and a target': {
    vm: { type: '' },
    vmi: {},
    options: TARGET,
    want: { act: 'set', from: '', to: TARGET.target },
  },

  'a matching type that is the default': { context: { defaultType: OLD } },
  'a matching type that is the default, with a guest': { vmi: {}, context: { defaultType: OLD } },
  'a matching type that is the default, with a guest of an older type': {
    vm: { type: 'pc-q35-rhel8.6.0' },
    vmi: {},
    context: { defaultType: 'pc-q35-rhel8.6.0' },
    want: MARK,
  },
  'another matching type, with a matching default': {
    vm: { type: 'pc-q35-rhel8.0.0' },
    context: { defaultType: OLD },
    want: { act: 'clear', from: 'pc-q35-rhel8.0.0', to: OLD },
  },
  'a target that is the current type': { vmi: {}, options: { target: OLD } },
  'a matching default alias that cannot be resolved': {
    ...alias,
    options: { glob: '*q35*' },
    context: { defaultType: 'q35' },
  },
  'a matching default alias that resolves to a newer type': {
    ...alias,
    options: { glob: '*q35*' },
    context: { defaultType: 'q35', ...CURRENT_TYPES },
    want: MARK,
  },
  'a matching default alias whose guest has the newest type': {
    vm: { type: 'q35' },
    vmi: { type: 'q35', runs: NEW },
    options: { glob: '*q35*' },
    context: { defaultType: 'q35', ...CURRENT_TYPES },
  },

  'the namespace of the VM': { options: { namespace: 'ns' }, want: CLEAR },
  'another namespace': { options: { namespace: 'other' } },
  'the name of the VM': { options: { name: 'db' }, want: CLEAR },
  'another name': { options: { name: 'db2' } },
  'a VM with the label': {
    vm: { metadata: { labels: { k: 'a' } } },
    options: { labelSelector: 'k in (a,b)' },
    want: CLEAR,
  },
  'a VM without the label': { options: { labelSelector: 'k in (a,b)' } },
  'a VM with an empty value of the label': {
    vm: { metadata: { labels: { k: '' } } },
    options: { labelSelector: 'k=' },
    want: CLEAR,
  },
  'a label on the instance only': {
    vmi: { metadata: { labels: { k: 'a' } } },
    options: { labelSelector: 'k=a' },
  },
  'only running VMs: a running VM': { vmi: {}, options: { state: 'running' }, want: CLEAR },
  'only running VMs: a stopped VM': { options: { state: 'running' } },
  'only stopped VMs: a running VM': { vmi: {}, options: { state: 'stopped' } },
  'only stopped VMs: a VM whose guest has ended': {
    vmi: { phase: 'Succeeded' },
    options: { state: 'stopped' },
    want: CLEAR,
  },
  'an instance of another owner': {
    vm: { type: 'q35' },
    vmi: { type: 'q35', runs: OLD, metadata: { ownerReferences: [] } },
  },
  'a VM that is being deleted': {
    vm: { metadata: { deletionTimestamp: '2026-01-01T12:00:00Z' } },
    want: CLEAR,
  },
};

for (const [name, { vm, vmi, options: given, context, want }] of Object.entries(cases)) {
  test(`${name}: ${want?.act ?? 'not selected'}`, () => {
    const instance = vmi === undefined ? undefined : aVmi(vmi);
    assert.deepEqual(selectVm(aVm(vm), instance, options(given), { defaultType: NEW, ...context }), want);
  });
}

test('a VM must match all filters', () => {
  const labels = { tier: 'a' };
  const given = options({ namespace: 'ns', labelSelector: 'tier=a', name: 'db', state: 'running' });
  const selected = (vm: VmOverrides, vmi?: VmiOverrides) =>
    selectVm(aVm(vm), vmi && aVmi(vmi), given, { defaultType: NEW }) !== undefined;
  assert.equal(selected({ metadata: { labels } }, {}), true);
  assert.equal(selected({ metadata: { labels, namespace: 'other' } }, {}), false);
  assert.equal(selected({ metadata: {} }, {}), false);
  assert.equal(selected({ metadata: { labels, name: 'web' } }, {}), false);
  assert.equal(selected({ metadata: { labels } }), false);
});

test('a transition does not select its own results again', () => {
  const context = { defaultType: 'pc-q35-rhel8.6.0' };
  const before = selectVm(aVm(), undefined, options(), context);
  assert.equal(before?.act, 'clear');
  assert.equal(selectVm(aVm({ type: '' }), undefined, options(), context), undefined);
  const started = { type: context.defaultType };
  assert.equal(selectVm(aVm(started), aVmi(started), options(), context), undefined);
});

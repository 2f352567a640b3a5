import assert from 'node:assert/strict';
import { test } from 'node:test';
import { selectVm, type SelectContext, type Selection } from '#api/machine-types/select-vm.ts';
import type { TransitionOptions } from '#api/machine-types/options.ts';
import { aVm, aVmi, options, type VmiOverrides, type VmOverrides } from '#api/machine-types/transition.fixture.ts';

const OLD = 'pc-q35-rhel8.2.0';
const NEW = 'pc-q35-rhel9.2.0';

interface Case {
  readonly vm?: VmOverrides;
  readonly vmi?: VmiOverrides;
  readonly options?: Partial<TransitionOptions>;
  readonly context?: Partial<SelectContext>;
  readonly want?: Selection;
}

const CLEAR: Selection = { act: 'clear', from: OLD, to: NEW };
const MARK: Selection = { act: 'mark', from: OLD };
const alias = { vm: { type: 'q35' }, vmi: { type: 'q35', runs: OLD } };
const untyped = { vm: { type: undefined } };
const TARGET = { target: 'pc-q35-rhel9.0.0' };
const QEMU_OF_TODAY = { canonical: (type: string) => (type === 'q35' ? NEW : undefined) };

const cases: Record<string, Case> = {
  'a stopped VM of an old type': { want: CLEAR },
  'a running one': { vmi: {}, want: CLEAR },
  'one of a newer type': { vm: { type: NEW }, vmi: { type: NEW } },
  'the glob of the proposal': { options: { glob: '*rhel-8.*' }, want: CLEAR },
  'a target is set instead': { options: TARGET, want: { act: 'set', from: OLD, to: TARGET.target } },

  'what an alias gives is told with it': {
    options: { target: 'q35' },
    context: QEMU_OF_TODAY,
    want: { act: 'set', from: OLD, to: 'q35', gives: NEW },
  },
  'an alias that runs on an old type': { ...alias, want: MARK },
  'an alias that runs on a new one': { vm: { type: 'q35' }, vmi: { type: 'q35', runs: NEW } },
  'an alias that does not run': { vm: { type: 'q35' } },
  'an alias whose guest nobody has asked yet': { vm: { type: 'q35' }, vmi: { type: 'q35', status: { machine: {} } } },
  'an alias that runs on an old type gets the target': {
    ...alias,
    options: TARGET,
    want: { act: 'set', from: 'q35', to: TARGET.target },
  },
  'an alias that is the target needs only a restart': { ...alias, options: { target: 'q35' }, want: MARK },
  'an alias of which nodes say that it stays what it is': {
    ...alias,
    context: { canonical: () => OLD },
  },
  'an alias whose newest type matches, but a guest on an older one': {
    ...alias,
    context: { canonical: () => 'pc-q35-rhel8.6.0' },
    want: MARK,
  },
  'an alias whose newest type matches, and runs on it': {
    vm: { type: 'q35' },
    vmi: { type: 'q35', runs: 'pc-q35-rhel8.6.0' },
    context: { canonical: () => 'pc-q35-rhel8.6.0' },
  },
  'a spec that was changed while the guest runs': { vm: { type: NEW }, vmi: {}, want: MARK },
  'a target does not undo what somebody has decided since': {
    vm: { type: NEW },
    vmi: {},
    options: TARGET,
    want: MARK,
  },

  'no type, and the guest runs on an old one': { ...untyped, vmi: {}, want: MARK },
  'null is no type': { vm: { type: null }, vmi: {}, want: MARK },
  'an empty one is none': { vm: { type: '' }, vmi: {}, want: MARK },
  'no type, and a glob that means all': { ...untyped, options: { glob: '*' } },
  'no type, not running': untyped,
  'no type, and the guest runs on the default': { ...untyped, vmi: {}, context: { defaultType: OLD } },
  'no type, an old default and a target': {
    ...untyped,
    options: TARGET,
    context: { defaultType: OLD },
    want: { act: 'set', from: '', to: TARGET.target },
  },
  'no type, a guest on an old one, and a target': {
    vm: { type: '' },
    vmi: {},
    options: TARGET,
    want: { act: 'set', from: '', to: TARGET.target },
  },

  'a default that matches is not cleared for itself': { context: { defaultType: OLD } },
  'nor restarted for itself': { vmi: {}, context: { defaultType: OLD } },
  'but a guest that runs on an older one is': {
    vm: { type: 'pc-q35-rhel8.6.0' },
    vmi: {},
    context: { defaultType: 'pc-q35-rhel8.6.0' },
    want: MARK,
  },
  'another that matches goes over to it, once': {
    vm: { type: 'pc-q35-rhel8.0.0' },
    context: { defaultType: OLD },
    want: { act: 'clear', from: 'pc-q35-rhel8.0.0', to: OLD },
  },
  'a target that matches is not set again': { vmi: {}, options: { target: OLD } },
  'an alias that is the default and matches, of which nothing is known': {
    ...alias,
    options: { glob: '*q35*' },
    context: { defaultType: 'q35' },
  },
  'an alias that is the default and matches, and is known to be newer': {
    ...alias,
    options: { glob: '*q35*' },
    context: { defaultType: 'q35', ...QEMU_OF_TODAY },
    want: MARK,
  },
  'an alias that is the default and matches, and runs on the newest': {
    vm: { type: 'q35' },
    vmi: { type: 'q35', runs: NEW },
    options: { glob: '*q35*' },
    context: { defaultType: 'q35', ...QEMU_OF_TODAY },
  },

  'of its namespace': { options: { namespace: 'ns' }, want: CLEAR },
  'of another namespace': { options: { namespace: 'other' } },
  'of its name': { options: { name: 'db' }, want: CLEAR },
  'of another name': { options: { name: 'db2' } },
  'with the label': {
    vm: { metadata: { labels: { k: 'a' } } },
    options: { labelSelector: 'k in (a,b)' },
    want: CLEAR,
  },
  'without the label': { options: { labelSelector: 'k in (a,b)' } },
  'with an empty value of the label': {
    vm: { metadata: { labels: { k: '' } } },
    options: { labelSelector: 'k=' },
    want: CLEAR,
  },
  'the labels of the instance do not count': {
    vmi: { metadata: { labels: { k: 'a' } } },
    options: { labelSelector: 'k=a' },
  },
  'only running ones, and it runs': { vmi: {}, options: { state: 'running' }, want: CLEAR },
  'only running ones, and it does not': { options: { state: 'running' } },
  'only stopped ones, and it runs': { vmi: {}, options: { state: 'stopped' } },
  'only stopped ones, and its guest has ended': {
    vmi: { phase: 'Succeeded' },
    options: { state: 'stopped' },
    want: CLEAR,
  },
  'an instance of somebody else is not its own': {
    vm: { type: 'q35' },
    vmi: { type: 'q35', runs: OLD, metadata: { ownerReferences: [] } },
  },
  'one that is being deleted is told of, too': {
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

test('all filters together are an intersection', () => {
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

test('what a transition has done, it does not select again', () => {
  const context = { defaultType: 'pc-q35-rhel8.6.0' };
  const before = selectVm(aVm(), undefined, options(), context);
  assert.equal(before?.act, 'clear');
  assert.equal(selectVm(aVm({ type: '' }), undefined, options(), context), undefined);
  const started = { type: context.defaultType };
  assert.equal(selectVm(aVm(started), aVmi(started), options(), context), undefined);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { predictRecord } from '#api/identity/predict-record.ts';
import { aVm, aVmi, options } from '#api/machine-types/testing/sample-transition.ts';
import { previewVm, previewText, type PreviewCandidate, type PreviewContext } from '#cli/machine-types/plan-preview.ts';

const configuration = configurationOf({ spec: { configuration: { machineType: 'pc-q35-7.2' } } });

function preview(candidate: Partial<PreviewCandidate>, asked = options(), context: Partial<PreviewContext> = {}) {
  const all = { vm: aVm(), vmi: undefined, record: undefined, ...candidate };
  return previewVm(all, asked, { configuration, ...context });
}

const whats: Record<string, { got: ReturnType<typeof preview>; want: string | undefined }> = {
  'clears the type of a stopped VM': { got: preview({}), want: 'clear the type' },
  'also marks a running VM': { got: preview({ vmi: aVmi() }), want: 'clear the type, mark: restart required' },
  'or restarts it': { got: preview({ vmi: aVmi() }, options({ restartNow: true })), want: 'clear the type, restart' },
  'or stops it if the run strategy is Once': {
    got: preview({ vm: aVm({ runStrategy: 'Once' }), vmi: aVmi() }, options({ restartNow: true })),
    want: 'clear the type, stop',
  },
  'sets a target type': { got: preview({}, options({ target: 'pc-q35-6.2' })), want: 'set the type' },
  'does not restart a guest that already runs with the type': {
    got: preview(
      { vm: aVm({ type: 'q35' }), vmi: aVmi({ type: 'q35', runs: 'pc-q35-7.2' }) },
      options({ glob: 'q35', target: 'pc-q35-7.2', restartNow: true }),
    ),
    want: 'set the type',
  },
  'only marks an alias that resolved to an old type': {
    got: preview({ vm: aVm({ type: 'q35' }), vmi: aVmi({ type: 'q35', runs: 'pc-q35-rhel8.2.0' }) }),
    want: 'mark: restart required',
  },
  'ignores a VM under deletion': {
    got: preview({ vm: aVm({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }) }),
    want: undefined,
  },
  'ignores a VM with another type': { got: preview({ vm: aVm({ type: 'pc-q35-6.2' }) }), want: undefined },
};
for (const [title, { got, want }] of Object.entries(whats)) test(title, () => assert.equal(got?.what, want));

test('shows the type before and after', () => {
  const row = preview({ vmi: aVmi() });
  assert.deepEqual([row?.from, row?.to, row?.running], ['pc-q35-rhel8.2.0', 'pc-q35-7.2', true]);
  assert.deepEqual(
    row?.differences.map(({ what, from, to }) => [what, from, to]),
    [['machine type', 'pc-q35-rhel8.2.0', 'pc-q35-7.2']],
  );
});

test('shows that an alias resolves to another type', () => {
  const row = preview({ vm: aVm({ type: 'q35' }), vmi: aVmi({ type: 'q35', runs: 'pc-q35-rhel8.2.0' }) });
  assert.equal(row?.to, 'q35 (resolved at the start)');
  assert.deepEqual(
    row?.differences.map(({ what, from, to }) => [what, from, to]),
    [['machine type', 'pc-q35-rhel8.2.0', 'q35 (resolved at the start)']],
  );
});

test('shows the other type of an alias for a stopped guest as well', () => {
  const vm = aVm();
  const record = { ...predictRecord(vm), status: { machine: { type: 'pc-q35-rhel8.2.0' }, devices: [] } };
  const asked = options();
  const candidate = { vm, record: record as unknown as PreviewCandidate['record'] };
  const q35 = { configuration: configurationOf(undefined) };
  const changes = (row: ReturnType<typeof preview>) =>
    row?.differences.filter(({ what }) => what === 'machine type').map(({ what, from, to }) => [what, from, to]);
  assert.deepEqual(changes(preview(candidate, asked, q35)), [
    ['machine type', 'pc-q35-rhel8.2.0', 'q35 (resolved at the start)'],
  ]);
  const canonical = (type: string) => (type === 'q35' ? 'pc-q35-7.2' : undefined);
  assert.deepEqual(changes(preview(candidate, asked, { ...q35, canonical })), [
    ['machine type', 'pc-q35-rhel8.2.0', 'q35 (pc-q35-7.2)'],
  ]);
});

const waits: Record<string, { got: ReturnType<typeof preview>; want: RegExp | undefined }> = {
  'a restart waits for a snapshot': {
    got: preview(
      { vm: aVm({ status: { snapshotInProgress: 'nightly' } }), vmi: aVmi() },
      options({ restartNow: true }),
    ),
    want: /nightly/,
  },
  'a mark does not wait for a snapshot': {
    got: preview({ vm: aVm({ status: { snapshotInProgress: 'nightly' } }), vmi: aVmi() }),
    want: undefined,
  },
  'everything waits for a restore': {
    got: preview({ vm: aVm({ status: { restoreInProgress: 'back' } }) }),
    want: /back/,
  },
};
for (const [title, { got, want }] of Object.entries(waits)) {
  test(`what has to wait: ${title}`, () => {
    if (want === undefined) assert.equal(got?.obstacle, undefined);
    else assert.match(got?.obstacle ?? '', want);
  });
}

test('renders the plan as a table, with details for other changes', () => {
  const vm = aVm({ metadata: { name: 'web', uid: 'vm-uid' } });
  const vmi = {
    ...aVmi({ metadata: { name: 'web' } }),
    spec: { domain: { machine: { type: 'pc-q35-rhel8.2.0' }, memory: { guest: '1Gi' } } },
  };
  const rows = [preview({}), preview({ vm, vmi })].filter((row) => row !== undefined);
  assert.equal(
    previewText(rows, '*rhel8.*'),
    `NAMESPACE   NAME   NOW                THEN         RUNNING   WHAT HAPPENS                             GUEST SEES
ns          db     pc-q35-rhel8.2.0   pc-q35-7.2   no        clear the type                           nothing: it never ran
ns          web    pc-q35-rhel8.2.0   pc-q35-7.2   yes       clear the type, mark: restart required   machine type, memory

What will change for the guest of ns/web at its next start:
  machine type
    - pc-q35-rhel8.2.0
    + pc-q35-7.2
    # the template names no machine type: the default of the KubeVirt object applies
  memory
    - 1Gi
    + 
    # the template of the VM changed

2 VMs, 1 of them running. Nothing was changed.`,
  );
});

test('prints a message if no VM needs a change', () => {
  const why = 'no selected VM has a machine type that matches "*8.*" and would get another type.';
  assert.equal(previewText([], '*8.*'), `No VM needs a change: ${why}`);
});

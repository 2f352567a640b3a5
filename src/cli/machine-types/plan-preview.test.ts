import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { aVm, aVmi, options } from '#api/machine-types/transition.fixture.ts';
import { previewOf, previewText, type Candidate } from '#cli/machine-types/plan-preview.ts';

const configuration = configurationOf({ spec: { configuration: { machineType: 'pc-q35-7.2' } } });

function preview(candidate: Partial<Candidate>, asked = options()) {
  return previewOf({ vm: aVm(), vmi: undefined, record: undefined, ...candidate }, asked, configuration);
}

const whats: Record<string, { got: ReturnType<typeof preview>; want: string | undefined }> = {
  'one that does not run is cleared': { got: preview({}), want: 'clear the type' },
  'one that runs is marked besides': { got: preview({ vmi: aVmi() }), want: 'clear the type, mark: restart required' },
  'or restarted': { got: preview({ vmi: aVmi() }, options({ restartNow: true })), want: 'clear the type, restart' },
  'a target is set': { got: preview({}, options({ target: 'pc-q35-6.2' })), want: 'set the type' },
  'an alias on an old type is only marked': {
    got: preview({ vm: aVm({ type: 'q35' }), vmi: aVmi({ type: 'q35', runs: 'pc-q35-rhel8.2.0' }) }),
    want: 'mark: restart required',
  },
  'another type stays': { got: preview({ vm: aVm({ type: 'pc-q35-6.2' }) }), want: undefined },
};
for (const [title, { got, want }] of Object.entries(whats)) test(title, () => assert.equal(got?.what, want));

test('types are told as they are now and then', () => {
  const row = preview({ vmi: aVmi() });
  assert.deepEqual([row?.from, row?.to, row?.running], ['pc-q35-rhel8.2.0', 'pc-q35-7.2', true]);
  assert.deepEqual(
    row?.differences.map(({ what, from, to }) => [what, from, to]),
    [['machine type', 'pc-q35-rhel8.2.0', 'pc-q35-7.2']],
  );
});

test('a guest on an alias sees another type, though the word stays', () => {
  const row = preview({ vm: aVm({ type: 'q35' }), vmi: aVmi({ type: 'q35', runs: 'pc-q35-rhel8.2.0' }) });
  assert.equal(row?.to, 'q35 (resolved at the start)');
  assert.deepEqual(
    row?.differences.map(({ what, from, to }) => [what, from, to]),
    [['machine type', 'pc-q35-rhel8.2.0', 'q35 (resolved at the start)']],
  );
});

test('what has to wait says why', () => {
  const row = preview({ vm: aVm({ status: { snapshotInProgress: 'nightly' } }), vmi: aVmi() });
  assert.match(row?.obstacle ?? '', /nightly/);
});

test('the plan is a table; more than the type is told in full', () => {
  const vm = aVm({ metadata: { name: 'web', uid: 'vm-uid' } });
  const vmi = {
    ...aVmi({ metadata: { name: 'web' } }),
    spec: { domain: { machine: { type: 'pc-q35-rhel8.2.0' }, memory: { guest: '1Gi' } } },
  };
  const rows = [preview({}), preview({ vm, vmi })].filter((row) => row !== undefined);
  assert.equal(
    previewText(rows, '*rhel8.*'),
    `NAMESPACE   NAME   NOW                THEN         RUNNING   WHAT HAPPENS                             GUEST SEES
ns          db     pc-q35-rhel8.2.0   pc-q35-7.2   no        clear the type                           no difference
ns          web    pc-q35-rhel8.2.0   pc-q35-7.2   yes       clear the type, mark: restart required   machine type, memory

What the guest of ns/web will see differently at its next start:
  machine type
    - pc-q35-rhel8.2.0
    + pc-q35-7.2
    # the template names no machine type: the default of the KubeVirt object counts
  memory
    - 1Gi
    + 
    # the template of the VM says so

2 VMs, 1 of them running. Nothing was changed.`,
  );
});

test('no VM is said to be none', () => {
  assert.equal(previewText([], '*8.*'), 'No VM is to be changed: none has a machine type that matches "*8.*".');
});

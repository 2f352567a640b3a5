import assert from 'node:assert/strict';
import { test } from 'node:test';
import { concludeVm, decideVm } from '#controllers/vm/decide-vm.ts';
import { aVm, aVmi, aWorld } from '#controllers/vm/testing/vm-world.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';

const LABEL = 'kubevirt.io/vm-delete-protection';
const BY = 'selfsame.io/delete-protection-by';
const WHY = 'selfsame.io/delete-protection-reason';

interface Case {
  readonly label?: string;
  readonly was?: boolean;
  readonly annotations?: Record<string, string>;
  readonly want: string[];
}

const cases: Record<string, Case> = {
  'is reported when it begins, with user and reason': {
    label: 'true',
    annotations: { [BY]: 'alice', [WHY]: 'the books' },
    want: ['DeleteProtectionEnabled Protected from deletion by alice: the books', 'true'],
  },
  'is reported without a reason': {
    label: 'True',
    annotations: { [BY]: 'alice' },
    want: ['DeleteProtectionEnabled Protected from deletion by alice', 'true'],
  },
  'is reported once': { label: 'true', was: true, want: ['true'] },
  'is reported when it ends': {
    label: 'false',
    was: true,
    annotations: { [BY]: 'bob' },
    want: ['DeleteProtectionDisabled No longer protected from deletion, by bob', 'undefined'],
  },
  'is not enabled by another label value': { label: 'TRUE', want: ['undefined'] },
};

for (const [name, { label, was, annotations, want }] of Object.entries(cases)) {
  test(`delete protection ${name}`, () => {
    const labels: Record<string, string> = label === undefined ? {} : { [LABEL]: label };
    const vm = aVm({ metadata: { labels, annotations: annotations ?? {} }, status: { deleteProtected: was } });
    const { events = [], status } = decideVm(aWorld({ vm, vmi: aVmi('Running') }));
    const reported = events.map(({ reason, message }) => `${reason} ${message}`);
    assert.deepEqual([...reported, String(status?.['deleteProtected'])], want);
  });
}

test('a status after a failure leaves the Event to the next reconcile', () => {
  const vm = aVm({ metadata: { labels: { [LABEL]: 'true' } } });
  const change = {
    do: 'patch',
    type: VIRTUAL_MACHINES,
    name: { name: 'db' },
    patch: { type: 'merge', body: {} },
  } as const;
  const failures = [{ change: { ...change, why: 'it starts' }, error: new Error('no') }];
  assert.equal(concludeVm(aWorld({ vm }), failures)?.['deleteProtected'], undefined);
});

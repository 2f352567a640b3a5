import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STARTED_ANNOTATION } from '#api/names.ts';
import { derivedMacOf, restoredFrom, startedMark } from '#api/virtual-machine-identity/restored-vm.ts';

const ORIGINAL = { namespace: 'team', name: 'db', uid: 'old-uid' };
const RESTORED = { ...ORIGINAL, uid: 'new-uid' };

const cases: Record<string, { vm: typeof ORIGINAL; mark: string | undefined; want: string | undefined }> = {
  'a VM that has never started is not restored': { vm: ORIGINAL, mark: undefined, want: undefined },
  'a VM that has started is not restored': { vm: ORIGINAL, mark: startedMark(ORIGINAL), want: undefined },
  'a VM with the mark of another uid is restored': { vm: RESTORED, mark: startedMark(ORIGINAL), want: 'old-uid' },
  'a copy under another name is a new machine': {
    vm: { ...RESTORED, name: 'copy' },
    mark: startedMark(ORIGINAL),
    want: undefined,
  },
  'a copy in another namespace is a new machine': {
    vm: { ...RESTORED, namespace: 'other' },
    mark: startedMark(ORIGINAL),
    want: undefined,
  },
  'a mark without a uid is ignored': { vm: RESTORED, mark: 'team/db/', want: undefined },
  'a mark with too many parts is ignored': { vm: RESTORED, mark: 'team/db/old-uid/more', want: undefined },
};

for (const [sentence, { vm, mark, want }] of Object.entries(cases)) {
  test(sentence, () => {
    const annotations: Record<string, string> = mark === undefined ? {} : { [STARTED_ANNOTATION]: mark };
    assert.equal(restoredFrom({ metadata: { ...vm, annotations } }), want);
  });
}

test('a restored VM has the MAC addresses of its original', () => {
  const mark = { annotations: { [STARTED_ANNOTATION]: startedMark(ORIGINAL) } };
  assert.equal(derivedMacOf({ metadata: { ...RESTORED, ...mark } }, 'n'), derivedMacOf({ metadata: ORIGINAL }, 'n'));
  assert.notEqual(derivedMacOf({ metadata: RESTORED }, 'n'), derivedMacOf({ metadata: ORIGINAL }, 'n'));
});

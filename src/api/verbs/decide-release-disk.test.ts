import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ProtectedClaim } from '#api/virtual-machine/schema.ts';
import { decideReleaseDisk } from '#api/verbs/decide-release-disk.ts';
import { aVm } from '#api/verbs/testing/verb-cases.ts';

const ROOT: ProtectedClaim = { name: 'root', uid: 'root-uid', volumeName: 'root' };
const OLD: ProtectedClaim = { name: 'old', uid: 'old-uid', volumeName: 'data', detached: true };
const OTHER: ProtectedClaim = { name: 'other', uid: 'other-uid', detached: true };

interface Case {
  /** Absent if there is no VM. */
  readonly list?: readonly ProtectedClaim[] | 'none';
  readonly claim?: string;
  /** The entries that remain, or the refusal. */
  readonly want: readonly ProtectedClaim[] | string;
}

const cases: Record<string, Case> = {
  'a detached disk is released': { list: [OLD, ROOT], claim: 'old', want: [ROOT] },
  'other detached disks stay': { list: [OLD, OTHER, ROOT], claim: 'old', want: [OTHER, ROOT] },
  'the last one is released': { list: [OLD], claim: 'old', want: [] },
  'a disk that is attached is not': {
    list: [OLD, ROOT],
    claim: 'root',
    want: '409 cannot release PersistentVolumeClaim "root": it is a disk of the VM; remove it from the VM first',
  },
  'a claim that the VM does not protect is not': {
    list: [ROOT],
    claim: 'old',
    want: '409 cannot release PersistentVolumeClaim "old": the VM does not protect it',
  },
  'nothing is released from a VM that protects nothing': {
    list: 'none',
    claim: 'old',
    want: '409 cannot release PersistentVolumeClaim "old": the VM does not protect it',
  },
  'a request without a name releases nothing': {
    list: [OLD],
    want: '409 cannot release PersistentVolumeClaim "": the VM does not protect it',
  },
  'a VM that does not exist': { claim: 'old', want: '404 not found' },
};

for (const [name, { list, claim, want }] of Object.entries(cases)) {
  test(name, () => {
    const status = list === 'none' || list === undefined ? {} : { protectedClaims: [...list] };
    const decision = decideReleaseDisk({
      name: 'db',
      ...(list !== undefined && { vm: aVm({}, status) }),
      ...(claim !== undefined && { options: { releasedClaim: claim } }),
    });
    if ('denied' in decision) {
      assert.equal(`${decision.denied.code} ${decision.denied.message}`, want);
      return;
    }
    const [step] = decision.allowed;
    assert.ok(step?.do === 'patchVmStatus');
    // Only on the list that the decision is based on.
    assert.deepEqual(step.patch, [
      { op: 'test', path: '/status/protectedClaims', value: list },
      { op: 'add', path: '/status/protectedClaims', value: want },
    ]);
  });
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ProtectedClaim, VmStatus } from '#api/virtual-machine/schema.ts';
import { protectedClaimsStatus } from '#controllers/vm/protected-claims.ts';
import { aVm, aWorld } from '#controllers/vm/testing/vm-world.ts';

const LABEL = { 'kubevirt.io/vm-delete-protection': 'true' };
const UIDS: Readonly<Record<string, string>> = { root: 'root-uid', data: 'data-uid', old: 'old-uid' };
const claim = (name: string, detached?: boolean): ProtectedClaim => ({
  name,
  uid: `${name}-uid`,
  ...(detached && { detached }),
});

interface Case {
  readonly disks: readonly string[];
  readonly status?: VmStatus;
  readonly labels?: Record<string, string>;
  readonly want?: readonly ProtectedClaim[];
}

const cases: Record<string, Case> = {
  'the disks of the template': { disks: ['root', 'data'], want: [claim('data'), claim('root')] },
  'no claim that does not exist': { disks: ['missing'] },
  'nothing if the VM is not protected': {
    disks: ['root'],
    labels: {},
    status: { protectedClaims: [claim('old', true)] },
  },
  'a disk that was detached': {
    disks: ['root'],
    status: { protectedClaims: [claim('data'), claim('root')] },
    want: [claim('data', true), claim('root')],
  },
  'a disk that was detached earlier': {
    disks: ['root'],
    status: { protectedClaims: [claim('old', true)] },
    want: [claim('old', true), claim('root')],
  },
  'a disk that was attached again': {
    disks: ['root', 'old'],
    status: { protectedClaims: [claim('old', true)] },
    want: [claim('old'), claim('root')],
  },
  'no detached claim that is gone, even if another has its name': {
    disks: ['root'],
    status: { protectedClaims: [{ name: 'data', uid: 'earlier', detached: true }] },
    want: [claim('root')],
  },
  'no disk that a restore replaces, but those that were detached before': {
    disks: ['root'],
    status: { restoreInProgress: 'back', protectedClaims: [claim('data'), claim('old', true)] },
    want: [claim('old', true), claim('root')],
  },
};

for (const [sentence, { disks, status, labels = LABEL, want }] of Object.entries(cases)) {
  test(`the status names ${sentence}`, () => {
    const vm = aVm({ metadata: { labels }, status });
    const volumes = disks.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } }));
    const template = { ...vm.spec.template, spec: { domain: {}, ...vm.spec.template.spec, volumes } };
    const world = aWorld({ vm: { ...vm, spec: { ...vm.spec, template } }, claimUidOf: (name) => UIDS[name] });
    assert.deepEqual(protectedClaimsStatus(world).protectedClaims, want);
  });
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ProtectedClaim, VmStatus } from '#api/virtual-machine/schema.ts';
import { protectedClaimsStatus } from '#controllers/vm/protected-claims.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { aVm, aWorld } from '#controllers/vm/testing/vm-world.ts';

const LABEL = { 'kubevirt.io/vm-delete-protection': 'true' };
const UIDS: Readonly<Record<string, string>> = {
  root: 'root-uid',
  data: 'data-uid',
  old: 'old-uid',
  restored: 'restored-uid',
};
const claim = (name: string, detached?: boolean): ProtectedClaim => ({
  name,
  uid: `${name}-uid`,
  volumeName: name,
  ...(detached && { detached }),
});

const restored = (volumeName: string) => ({
  volumeName,
  persistentVolumeClaim: 'restored',
  volumeSnapshotName: `vs-${volumeName}`,
});

interface Case {
  /** The claims of the disks, by the names of their volumes if these differ. */
  readonly disks: readonly string[] | Readonly<Record<string, string>>;
  readonly restoredVolumes?: VmWorld['restoredVolumes'];
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
  'no disk that a restore has replaced, but those that were detached before': {
    disks: { root: 'restored' },
    status: { restoreInProgress: 'back', protectedClaims: [claim('root'), claim('old', true)] },
    restoredVolumes: [restored('root')],
    want: [claim('old', true), { ...claim('restored'), volumeName: 'root' }],
  },
  'a disk that a restore has detached because the snapshot does not have it': {
    disks: { root: 'restored' },
    status: { restoreInProgress: 'back', protectedClaims: [claim('root'), claim('data')] },
    restoredVolumes: [restored('root')],
    want: [claim('data', true), { ...claim('restored'), volumeName: 'root' }],
  },
  'a disk that is detached while a restore that has not replaced it holds the VM': {
    disks: ['data'],
    status: { restoreInProgress: 'back', protectedClaims: [claim('root'), claim('data')] },
    restoredVolumes: [restored('root')],
    want: [claim('data'), claim('root', true)],
  },
  'a disk whose restore is gone': {
    disks: { root: 'restored' },
    status: { restoreInProgress: 'back', protectedClaims: [claim('root')] },
    want: [{ ...claim('restored'), volumeName: 'root' }, claim('root', true)],
  },
};

for (const [sentence, { disks, status, restoredVolumes, labels = LABEL, want }] of Object.entries(cases)) {
  test(`the status names ${sentence}`, () => {
    const vm = aVm({ metadata: { labels }, status });
    const named = Array.isArray(disks) ? disks.map((name) => [name, name]) : Object.entries(disks);
    const volumes = named.map(([name, claimName]) => ({ name, persistentVolumeClaim: { claimName } }));
    const template = { ...vm.spec.template, spec: { domain: {}, ...vm.spec.template.spec, volumes } };
    const world = aWorld({
      vm: { ...vm, spec: { ...vm.spec, template } },
      restoredVolumes,
      claimUidOf: (name) => UIDS[name],
    });
    assert.deepEqual(protectedClaimsStatus(world).protectedClaims, want);
  });
}

test('the status names detached disks even if the template has more disks than fit', () => {
  const volumes = Array.from({ length: 600 }, (_, i) => ({
    name: `disk-${i}`,
    persistentVolumeClaim: { claimName: `disk-${i}` },
  }));
  const status = { protectedClaims: [claim('old', true)] };
  const vm = aVm({ metadata: { labels: LABEL }, status, template: { domain: {}, volumes } });
  const { protectedClaims = [] } = protectedClaimsStatus(aWorld({ vm, claimUidOf: (name) => `${name}-uid` }));
  assert.equal(protectedClaims.length, 500);
  assert.deepEqual(
    protectedClaims.find(({ detached }) => detached),
    claim('old', true),
  );
});

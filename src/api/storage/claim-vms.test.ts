import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findClaimVm, findStateBlocker } from '#api/storage/claim-vms.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import type { Stored } from '#kube/meta.ts';

interface VmOverrides {
  readonly disk?: string;
  readonly status?: VmStatus;
  readonly isProtected?: boolean;
}

function aVm(name: string, { disk, status, isProtected = false }: VmOverrides): Stored<VirtualMachine> {
  const volumes = disk === undefined ? [] : [{ name: 'root', persistentVolumeClaim: { claimName: disk } }];
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: {
      name,
      namespace: 'ns',
      uid: name,
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...(isProtected && { labels: { 'kubevirt.io/vm-delete-protection': 'true' } }),
    },
    spec: { runStrategy: 'Halted', template: { spec: { domain: {}, volumes } } },
    ...(status && { status }),
  };
}

const GOLD = { name: 'gold', uid: 'gold-uid' };
const DETACHED = { protectedClaims: [{ ...GOLD, detached: true }] };
const STATE = { stateClaim: GOLD };

interface Case {
  readonly vm: Stored<VirtualMachine>;
  /** [the VM uses the claim, the claim cannot be the state of the VM `db` because of that] */
  readonly want: readonly [boolean, boolean];
}

const cases: Record<string, Case> = {
  'a disk of another VM': { vm: aVm('other', { disk: 'gold' }), want: [true, true] },
  'a disk of the VM itself': { vm: aVm('db', { disk: 'gold' }), want: [true, true] },
  'a detached disk of another VM': { vm: aVm('other', { isProtected: true, status: DETACHED }), want: [true, true] },
  'a detached disk of the VM itself': { vm: aVm('db', { isProtected: true, status: DETACHED }), want: [true, true] },
  'the state of another VM': { vm: aVm('other', { status: STATE }), want: [true, false] },
  'the state of a protected VM': { vm: aVm('other', { isProtected: true, status: STATE }), want: [true, true] },
  'the state of the VM itself': { vm: aVm('db', { isProtected: true, status: STATE }), want: [false, false] },
  'a claim that the VM does not name': { vm: aVm('other', { disk: 'root' }), want: [false, false] },
};

for (const [name, { vm, want }] of Object.entries(cases)) {
  test(`finds the VM of ${name}`, () => {
    const found = [findClaimVm, findStateBlocker].map((find) => find([vm], 'gold', { uid: 'db' }));
    assert.deepEqual(
      found.map((one) => one === vm),
      want,
    );
  });
}

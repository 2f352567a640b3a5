import assert from 'node:assert/strict';
import { test } from 'node:test';
import { warnAboutSharedClaims } from '#admission/shared-claims.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

interface VmOverrides {
  readonly claims?: readonly string[];
  readonly readOnly?: boolean;
  readonly meta?: ObjectMeta;
}

function aVm(
  name: string,
  { claims = ['data'], readOnly = false, meta = {} }: VmOverrides = {},
): Stored<VirtualMachine> {
  const volumes = claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName, readOnly } }));
  const disks = claims.map((disk) => ({ name: disk, disk: {} }));
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { namespace: 'default', name, uid: name, resourceVersion: '1', creationTimestamp: '', ...meta },
    spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: { disks } }, volumes } } },
  };
}

const aClaim = (spec: PersistentVolumeClaim['spec']): Stored<PersistentVolumeClaim> => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { namespace: 'default', name: 'data', uid: 'data', resourceVersion: '1', creationTimestamp: '' },
  spec,
});

const WARNING =
  'PersistentVolumeClaim "data" is also a disk of VirtualMachine "web": only one of them can run at a time';

interface Case {
  readonly vm?: VmOverrides;
  readonly others?: readonly Stored<VirtualMachine>[];
  readonly claim?: PersistentVolumeClaim['spec'];
  readonly want: readonly string[];
}

const cases: Record<string, Case> = {
  'another VM has the same disk': { want: [WARNING] },
  'several VMs have the same disk': { others: [aVm('zoo'), aVm('web')], want: [WARNING] },
  'only the VM itself has the disk': { others: [aVm('db')], want: [] },
  'the other VM owns the claim and does not have it as a disk': { others: [aVm('web', { claims: [] })], want: [] },
  'the other VM is being deleted': { others: [aVm('web', { meta: { deletionTimestamp: 'now' } })], want: [] },
  'the VM itself is being deleted': { vm: { meta: { deletionTimestamp: 'now' } }, want: [] },
  'both only read the disk': { vm: { readOnly: true }, others: [aVm('web', { readOnly: true })], want: [] },
  'the claim is a block device that may be shared': {
    claim: { accessModes: ['ReadWriteMany'], volumeMode: 'Block' },
    want: [],
  },
};

for (const [name, { vm, others = [aVm('web')], claim, want }] of Object.entries(cases)) {
  test(`a warning about a disk of two VMs: ${name}`, () => {
    const lookup = {
      vmsOfClaim: () => others,
      claimsOfVm: () => (claim === undefined ? [] : [aClaim(claim)]),
    };
    assert.deepEqual(warnAboutSharedClaims(aVm('db', vm), lookup), want);
  });
}

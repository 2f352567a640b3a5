import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { newUid } from '#lib/ids.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import { describeDiskProblem, findHolder } from '#node/domains/describe-disk-problem.ts';
import { createFakeHypervisor } from '#node/hypervisor/fake/fake-hypervisor.ts';
import type { DiskProblem } from '#node/hypervisor/hypervisor.ts';
import { aDefinition, aDisk } from '#node/hypervisor/testing/a-definition.ts';

const volumes = [
  { name: 'root', persistentVolumeClaim: { claimName: 'db-root' } },
  { name: 'scratch', emptyDisk: { capacity: '1Gi' } },
];
const vmi: Stored<VirtualMachineInstance> = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { namespace: 'default', name: 'db', uid: 'db', resourceVersion: '1', creationTimestamp: '' },
  spec: { domain: {}, volumes },
};
const LOCKED: DiskProblem = { deviceId: 'disk-root', is: 'inUse', detail: 'Failed to get "write" lock' };
const DAMAGED: DiskProblem = { deviceId: 'disk-root', is: 'damaged', detail: 'qcow2 header too short' };
const ROOT = 'volume "root" (PersistentVolumeClaim "db-root")';

const cases: Record<string, { problem: DiskProblem; verb?: 'plug in'; holder?: string; want: RegExp }> = {
  'another guest of the namespace has the disk': {
    problem: LOCKED,
    holder: 'default/web',
    want: /^ClaimInUse: Cannot start VirtualMachineInstance "db": volume "root" \(PersistentVolumeClaim "db-root"\) is in use by VirtualMachineInstance "web"; stop it, or use another claim$/,
  },
  'a guest of another namespace has the disk': {
    problem: LOCKED,
    holder: 'secret/web',
    want: /is in use by a guest of another namespace; stop it, or use another claim$/,
  },
  'an unknown program has the disk': { problem: LOCKED, want: /is in use by another guest or a program; stop it/ },
  'the disk is plugged in': {
    problem: LOCKED,
    verb: 'plug in',
    holder: 'default/web',
    want: /^ClaimInUse: Cannot plug in volume "root": volume "root" \(Pers.* in use by VirtualMachineInstance "web"; stop/,
  },
  'the image is damaged': {
    problem: DAMAGED,
    want: new RegExp(
      `^ImageDamaged: Cannot start VirtualMachineInstance "db": the image of ${ROOT.replace(/[()]/g, '\\$&')} is damaged \\(qcow2 header too short\\); restore the claim from a snapshot, or upload the image again`,
    ),
  },
  'a disk without a claim': {
    problem: { ...DAMAGED, deviceId: 'disk-scratch' },
    want: /the image of volume "scratch" is damaged/,
  },
};

for (const [name, { problem, verb = 'start', holder, want }] of Object.entries(cases)) {
  test(`describes a disk that cannot be opened: ${name}`, () => {
    const { reason, message } = describeDiskProblem(problem, vmi, verb, holder);
    assert.match(`${reason}: ${message}`, want);
  });
}

test('finds the guest that has a disk, until that has ended', async () => {
  const hypervisor = createFakeHypervisor({ clock: new FakeClock() });
  await hypervisor.adopt();
  const plain = aDefinition();
  const disk = aDisk('root', 3, { path: '/volumes/pv/disk.img', format: 'raw' });
  await hypervisor.create({ ...plain, name: 'default/web', devices: [...plain.devices, disk] });
  const [path, other] = ['/volumes/pv/disk.img', newUid()];
  assert.equal(findHolder(path, other, hypervisor), 'default/web');
  assert.equal(findHolder(path, plain.id, hypervisor), undefined);
  assert.equal(findHolder('/volumes/other/disk.img', other, hypervisor), undefined);
  assert.equal(findHolder(undefined, other, hypervisor), undefined);
  await hypervisor.destroy(plain.id);
  assert.equal(findHolder(path, other, hypervisor), undefined);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aVmi } from '#api/validation/testing/valid-objects.ts';
import { findMounted, mountedText } from '#cli/commands/mounted-volume.ts';
import { judgePlugged, judgeUnplugged } from '#cli/wait/volume-state.ts';

type Judge = typeof judgePlugged;
const vmi = (status: object, volumes: object[] = []) => aVmi({ spec: { volumes }, status });
const entry = (phase: string, message = '') => ({
  volumeStatus: [{ name: 'data', phase, reason: 'Because', message }],
});

const cases: Record<string, { judge: Judge; vmi: ReturnType<typeof vmi> | undefined; want: object }> = {
  'a volume that no status names is pending': {
    judge: judgePlugged,
    vmi: vmi({}),
    want: { waiting: 'volume data: Pending' },
  },
  'a pending volume shows its message': {
    judge: judgePlugged,
    vmi: vmi(entry('Pending', 'claim is unbound')),
    want: { waiting: 'volume data: Pending (claim is unbound)' },
  },
  'a volume that the guest has is plugged': {
    judge: judgePlugged,
    vmi: vmi(entry('Ready')),
    want: { done: 'Volume data is plugged into VM db' },
  },
  'a VM that stops does not get the volume': {
    judge: judgePlugged,
    vmi: undefined,
    want: { failed: 'Cannot confirm that volume data is plugged in: VM db stopped meanwhile' },
  },
  'a volume that the guest has not released is not unplugged': {
    judge: judgeUnplugged,
    vmi: vmi(entry('Detaching')),
    want: { waiting: 'volume data: Detaching (Because)' },
  },
  'a volume in the spec is not unplugged': {
    judge: judgeUnplugged,
    vmi: vmi({}, [{ name: 'data' }]),
    want: { waiting: 'volume data: Pending' },
  },
  'a device that is still plugged in is not unplugged': {
    judge: judgeUnplugged,
    vmi: vmi({ hotplug: [{ device: 'disk-data', phase: 'Ready' }] }),
    want: { waiting: 'volume data: Pending' },
  },
  'a volume that nothing names is unplugged': {
    judge: judgeUnplugged,
    vmi: vmi({}),
    want: { done: 'Volume data is unplugged from VM db' },
  },
  'a VM that stops has released the volume': {
    judge: judgeUnplugged,
    vmi: vmi({ phase: 'Succeeded' }, [{ name: 'data' }]),
    want: { done: 'VM db stopped meanwhile, without volume data' },
  },
};
for (const [title, { judge, vmi: instance, want }] of Object.entries(cases)) {
  test(title, () => assert.deepEqual(judge({ vm: 'db', volume: 'data', vmi: instance }), want));
}

const SERIAL = 'a-serial-number-of-24-cs';
const withDisk = (serial?: string) => aVmi({ spec: { domain: { devices: { disks: [{ name: 'data', serial }] } } } });
const fileSystem = (busType: string, serial?: string) => ({
  diskName: 'sda1',
  mountPoint: '/mnt',
  fileSystemType: 'ext4',
  usedBytes: 0,
  totalBytes: 0,
  disk: [{ busType, ...(serial === undefined ? {} : { serial }) }],
});
const mounts: Record<string, { reported: ReturnType<typeof fileSystem>; serial?: string; mounted: boolean }> = {
  'a SCSI disk is found by the serial that udev reports': {
    reported: fileSystem('scsi', `0QEMU_QEMU_HARDDISK_${SERIAL}`),
    serial: SERIAL,
    mounted: true,
  },
  'a SCSI disk is found by its plain serial': { reported: fileSystem('scsi', SERIAL), serial: SERIAL, mounted: true },
  'a virtio disk is found by the first 20 characters': {
    reported: fileSystem('virtio', SERIAL.slice(0, 20)),
    serial: SERIAL,
    mounted: true,
  },
  'another disk is not mounted': { reported: fileSystem('scsi', 'other'), serial: SERIAL, mounted: false },
  'a disk whose serial only ends the same is another one': {
    reported: fileSystem('scsi', `x_${SERIAL}`),
    serial: SERIAL,
    mounted: false,
  },
  'nothing is known without a serial in the guest': { reported: fileSystem('scsi'), serial: SERIAL, mounted: false },
  'nothing is known without a serial in the spec': { reported: fileSystem('scsi', ''), mounted: false },
};
for (const [title, { reported, serial, mounted }] of Object.entries(mounts)) {
  test(title, () => assert.equal(findMounted(withDisk(serial), 'data', [reported]).length > 0, mounted));
}

test('the warning names each mount point', () => {
  assert.equal(
    mountedText('db', 'data', [fileSystem('scsi'), { ...fileSystem('scsi'), mountPoint: '/srv', diskName: 'sda2' }]),
    'Warning: the guest of VM db has volume data mounted at /mnt (sda1, ext4) and /srv (sda2, ext4): ' +
      'data that it has not written yet may be lost; unmount volumes in the guest first (--dry-run only checks)',
  );
});

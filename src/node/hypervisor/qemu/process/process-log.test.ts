import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findFirstError, isPermanentError, startLine } from '#node/hypervisor/qemu/process/process-log.ts';

const cases: Record<string, { log: string; want: string; permanent: boolean }> = {
  'an empty log': { log: '\n', want: '', permanent: false },
  'an unknown machine': {
    log: 'qemu-system-x86_64: unsupported machine type\nUse -machine help to list supported machines\n',
    want: 'unsupported machine type',
    permanent: true,
  },
  'skips warnings': {
    log: 'qemu-system-x86_64: warning: nic has no peer\nqemu-system-x86_64: -blockdev x: Could not open: No such file\n',
    want: '-blockdev x: Could not open: No such file',
    permanent: false,
  },
  'falls back to a warning': {
    log: 'qemu-system-x86_64: warning: odd\n',
    want: 'warning: odd',
    permanent: false,
  },
  'skips our own line': {
    log: `${startLine('qemu', ['-append', "it's quiet"])}qemu-system-x86_64: unsupported machine type\n`,
    want: 'unsupported machine type',
    permanent: true,
  },
  'two devices at one address': {
    log: 'qemu-system-x86_64: -device x: PCI: slot 0 function 0 not available for virtio-blk-pci, in use by virtio-blk-pci,id=disk0\n',
    want: '-device x: PCI: slot 0 function 0 not available for virtio-blk-pci, in use by virtio-blk-pci,id=disk0',
    permanent: true,
  },
  'names a device by its id': {
    log: `qemu-system-x86_64: -device {"driver":"x","id":"disk-a"}: lun already used by 'disk-b'\n`,
    want: `-device disk-a: lun already used by 'disk-b'`,
    permanent: true,
  },
  'names a medium by its file': {
    log: 'qemu-system-x86_64: -blockdev {"driver":"raw","file":{"filename":"/d/a.img"}}: Could not open: No such file\n',
    want: '-blockdev /d/a.img: Could not open: No such file',
    permanent: false,
  },
  'a LUN that is not a SCSI device': {
    log: 'qemu-system-x86_64: -device x: cannot get SG_IO version number: Invalid argument\nIs this a SCSI device?\n',
    want: '-device x: cannot get SG_IO version number: Invalid argument; a LUN needs a SCSI device of this node',
    permanent: true,
  },
  'a disk that is being copied': {
    log: `qemu-system-x86_64: Node 'fmt' is busy: block device is in use by block job: backup\n`,
    want: `Node 'fmt' is busy: block device is in use by block job: backup`,
    permanent: false,
  },
  'a lock that another process holds': {
    log: 'qemu-system-x86_64: -device x: Failed to get "write" lock\nIs another process using the image [disk.img]?\n',
    want: '-device x: Failed to get "write" lock',
    permanent: false,
  },
};

for (const [name, { log, want, permanent }] of Object.entries(cases)) {
  test(`finds the error in a log: ${name}`, () => {
    const error = findFirstError(log, 'qemu-system-x86_64');
    assert.equal(error, want);
    assert.equal(isPermanentError(error), permanent);
  });
}

test('shortens a long error', () => assert.equal(findFirstError('x'.repeat(10_000), 'qemu').length, 403));

test('formats the first line of a log for a shell', () => {
  const line = startLine('qemu', ['-name', 'default/a,b=c', '-append', "it's quiet"]);
  assert.equal(line, `selfsame: qemu -name default/a,b=c -append 'it'\\''s quiet'\n`);
});

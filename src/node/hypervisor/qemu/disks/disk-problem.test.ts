import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DiskSource } from '#node/hardware/domain-definition.ts';
import { formatNodeName } from '#node/hypervisor/qemu/arguments/block-nodes.ts';
import { findDiskProblem } from '#node/hypervisor/qemu/disks/disk-problem.ts';
import { findFirstErrorLine, findRefusedOption } from '#node/hypervisor/qemu/process/process-log.ts';
import { aDefinition, aDisk } from '#node/hypervisor/testing/a-definition.ts';

const PROGRAM = 'qemu-system-x86_64';
const DEVICE = '-device {"driver":"virtio-blk-pci","id":"disk-root","drive":"fmt-x"}';
const BLOCKDEV = `-blockdev {"driver":"qcow2","node-name":"${formatNodeName('disk-root')}","file":{"filename":"a"}}`;
const LOCK = 'Failed to get "write" lock';

/** Logs of QEMU 7.2 for disks with a lock or with damage. */
const cases: Record<string, { log: string; format?: DiskSource['format']; want?: string }> = {
  'a raw image that another guest has': { log: `${DEVICE}: ${LOCK}`, format: 'raw', want: `inUse: ${LOCK}` },
  'a qcow2 image that another guest has': { log: `${BLOCKDEV}: ${LOCK}`, want: `inUse: ${LOCK}` },
  'an image that another guest writes': {
    log: `${DEVICE}: Failed to get shared "write" lock`,
    format: 'raw',
    want: 'inUse: Failed to get shared "write" lock',
  },
  'another magic number': {
    log: `${BLOCKDEV}: Image is not in qcow2 format`,
    want: 'damaged: Image is not in qcow2 format',
  },
  'a header that is cut off': { log: `${BLOCKDEV}: qcow2 header too short`, want: 'damaged: qcow2 header too short' },
  'an invalid table': {
    log: `${BLOCKDEV}: Active L1 table offset invalid`,
    want: 'damaged: Active L1 table offset invalid',
  },
  'an invalid reference count table': {
    log: `${BLOCKDEV}: Reference count table offset invalid`,
    want: 'damaged: Reference count table offset invalid',
  },
  'an invalid cluster size': {
    log: `${BLOCKDEV}: Unsupported cluster size: 2^64`,
    want: 'damaged: Unsupported cluster size: 2^64',
  },
  'an unknown feature': {
    log: `${BLOCKDEV}: Unsupported qcow2 feature(s): Unknown incompatible feature: 100`,
    want: 'damaged: Unsupported qcow2 feature(s): Unknown incompatible feature: 100',
  },
  'an image that QEMU has marked as corrupt': {
    log: `${BLOCKDEV}: qcow2: Image is corrupt; cannot be opened read/write`,
    want: 'damaged: qcow2: Image is corrupt; cannot be opened read/write',
  },
  'a missing file': { log: `${BLOCKDEV}: Could not open 'a': No such file or directory` },
  'a file without permission': { log: `${BLOCKDEV}: Could not open 'a': Permission denied` },
  'storage that cannot be read': { log: `${BLOCKDEV}: Could not read L1 table: Input/output error` },
  'storage that cannot be read, at the header': { log: `${BLOCKDEV}: Could not read qcow2 header: Input/output error` },
  'storage that is full': { log: `${BLOCKDEV}: Failed to grow the L1 table: No space left on device` },
  'another device': { log: `-device {"driver":"x","id":"nic-a"}: ${LOCK}` },
  'no option': { log: 'unsupported machine type' },
};

for (const [name, { log, format = 'qcow2', want }] of Object.entries(cases)) {
  test(`finds the disk that QEMU cannot open: ${name}`, () => {
    const { devices } = aDefinition();
    const disks = [aDisk('data', 2, { path: '/d', format }), aDisk('root', 3, { path: '/a', format })];
    const line = findFirstErrorLine(`${PROGRAM}: ${log}\nIs another process using the image [a]?\n`, PROGRAM);
    const option = findRefusedOption(line);
    const found = option && findDiskProblem(option, [...devices, ...disks]);
    assert.equal(found && `${found.is}: ${found.detail}`, want);
    if (want !== undefined) assert.equal(found?.deviceId, 'disk-root');
  });
}

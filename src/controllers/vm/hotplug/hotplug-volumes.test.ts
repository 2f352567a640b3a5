/** Disks that come and go while the guest runs; others wait for a restart. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planHotplug } from '#controllers/vm/hotplug/hotplug.ts';
import {
  claimDisk,
  fixedDisk,
  nic,
  worldOf,
  afterHotplug,
  describeDevices,
  type Case,
  root,
  ROOT,
  hotplugStatus,
  testHotplug,
} from '#controllers/vm/hotplug/testing/hotplug-scene.ts';

const cases: Record<string, Case> = {
  'a new disk of the template is plugged in, with its volume': {
    runs: [root],
    template: [root, claimDisk('a'), claimDisk('b', { disk: { bus: 'virtio' } })],
    want: `${ROOT} a:a-claim b:b-claim`,
    events: ['HotplugVolume', 'HotplugVolume'],
  },
  'new disks are plugged in in the order of the template, after existing ones': {
    runs: [root, claimDisk('b')],
    template: [root, claimDisk('c'), claimDisk('b'), claimDisk('a')],
    want: `${ROOT} b:b-claim c:c-claim a:a-claim`,
    events: ['HotplugVolume', 'HotplugVolume'],
  },
  'a machine without devices can get a disk': {
    runs: [],
    template: [claimDisk('a')],
    want: 'a:a-claim',
    events: ['HotplugVolume'],
  },
  'a new disk that is not hotpluggable needs a restart': {
    runs: [root],
    template: [root, fixedDisk('a')],
    want: ROOT,
    restart: true,
  },
  'a new disk on another bus needs a restart': {
    runs: [root],
    template: [root, claimDisk('a', { disk: { bus: 'sata' } })],
    want: ROOT,
    restart: true,
  },
  'a new CD-ROM needs a restart': {
    runs: [root],
    template: [root, claimDisk('a', { disk: undefined, cdrom: { bus: 'scsi' } })],
    want: ROOT,
    restart: true,
  },
  'a new floppy needs a restart': {
    runs: [root],
    template: [root, claimDisk('a', { disk: undefined, floppy: {} })],
    want: ROOT,
    restart: true,
  },
  'a new disk with a boot order needs a restart': {
    runs: [root],
    template: [root, claimDisk('a', { bootOrder: 1 })],
    want: ROOT,
    restart: true,
  },
  'a LUN is plugged in like a disk': {
    runs: [root],
    template: [root, claimDisk('a', { disk: undefined, lun: { bus: 'scsi' } })],
    want: `${ROOT} a:a-claim`,
    events: ['HotplugVolume'],
  },
  'a disk that is removed from the template is unplugged': {
    runs: [root, claimDisk('a'), claimDisk('b')],
    template: [root, claimDisk('b')],
    want: `${ROOT} b:b-claim`,
    events: ['UnplugVolume'],
  },
  'the last disk is unplugged, too': { runs: [claimDisk('a')], template: [], want: '', events: ['UnplugVolume'] },
  'a removed disk that is not hotpluggable stays until a restart': {
    runs: [root, fixedDisk('a')],
    template: [root],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
  'a volume that was plugged in for this run only stays': {
    runs: [root, claimDisk('a')],
    template: [root],
    annotation: '["a"]',
    want: `${ROOT} a:a-claim ["a"]`,
  },
  'a volume of this run that is added to the template becomes permanent': {
    runs: [root, claimDisk('a'), claimDisk('b')],
    template: [root, claimDisk('a')],
    annotation: '["a","b"]',
    want: `${ROOT} a:a-claim b:b-claim ["b"]`,
  },
  'an annotation without volumes is removed': {
    runs: [root, claimDisk('a')],
    template: [root, claimDisk('a')],
    annotation: '["a"]',
    want: `${ROOT} a:a-claim`,
  },
  'no disk is unplugged if the annotation cannot be read': {
    runs: [root, claimDisk('a')],
    template: [root],
    annotation: '{"a":',
    want: `${ROOT} a:a-claim {"a":`,
  },
  'a disk that is only attached is not plugged in': {
    runs: [root],
    template: [root, claimDisk('a', { plugged: false })],
    want: ROOT,
  },
  'a disk that becomes only attached is unplugged': {
    runs: [root, claimDisk('a')],
    template: [root, claimDisk('a', { plugged: false })],
    want: ROOT,
    events: ['UnplugVolume'],
  },
  'a disk that was only attached is removed from the spec and plugged in anew': {
    runs: [root, claimDisk('a', { plugged: false })],
    template: [root, claimDisk('a')],
    want: ROOT,
    events: ['UnplugVolume'],
  },
  'a disk on another claim is unplugged and plugged in again': {
    runs: [root, claimDisk('a')],
    template: [root, claimDisk('a', {}, { claimName: 'other' })],
    want: ROOT,
    events: ['UnplugVolume'],
  },
  'another bus needs a restart: the guest uses the disk': {
    runs: [root, claimDisk('a')],
    template: [root, claimDisk('a', { disk: { bus: 'virtio' } })],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
  'another serial needs a restart': {
    runs: [root, claimDisk('a')],
    template: [root, claimDisk('a', { serial: 'x' })],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
  'another cache needs a restart': {
    runs: [root, claimDisk('a', { cache: 'none' })],
    template: [root, claimDisk('a', { cache: 'writeback' })],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
  'another read-only setting of the claim needs a restart': {
    runs: [root, claimDisk('a')],
    template: [root, claimDisk('a', {}, { readOnly: true })],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
  'a disk that is not in the guest can change without a restart': {
    runs: [root, claimDisk('a', { plugged: false })],
    template: [root, claimDisk('a', { plugged: false, serial: 'x' })],
    want: ROOT,
    events: ['UnplugVolume'],
  },
  'another notation of the same disk needs no restart': {
    runs: [root, claimDisk('a', { disk: {} })],
    template: [root, claimDisk('a', { disk: { bus: 'virtio', readonly: false }, plugged: true, optional: true })],
    want: `${ROOT} a:a-claim`,
  },
  'another notation of a fixed disk needs no restart': {
    runs: [root, claimDisk('a', { disk: undefined }, { hotpluggable: undefined }), nic('n')],
    template: [
      root,
      claimDisk('a', { disk: { bus: 'virtio', readonly: false }, serial: '' }, { hotpluggable: undefined }),
      nic('n', { model: 'virtio', state: 'up' }),
    ],
    want: `${ROOT} a:a-claim n`,
  },
  'a disk on another claim is plugged in again when the guest has released it': {
    runs: [root],
    template: [root, claimDisk('a', {}, { claimName: 'other' })],
    want: `${ROOT} a:other`,
    events: ['HotplugVolume'],
  },
  'a disk on another claim is not plugged in before the guest has released it': {
    runs: [root],
    template: [root, claimDisk('a', {}, { claimName: 'other' })],
    hotplug: hotplugStatus('disk-a', 'Unplugging'),
    want: ROOT,
  },
  'a disk that is no longer hotpluggable stays until a restart': {
    runs: [root, claimDisk('a')],
    template: [root, fixedDisk('a')],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
  'a claim that another disk releases can be used after that': {
    runs: [root, claimDisk('a')],
    template: [root, claimDisk('b', {}, { claimName: 'a-claim' })],
    want: ROOT,
    events: ['UnplugVolume'],
  },
  'a claim that the user plugged in under another name stays there for this run': {
    runs: [root, claimDisk('a')],
    template: [root, claimDisk('b', {}, { claimName: 'a-claim' })],
    annotation: '["a"]',
    want: `${ROOT} a:a-claim ["a"]`,
    restart: true,
  },
  'a read-only claim can have two disks': {
    runs: [root, claimDisk('a', {}, { readOnly: true })],
    template: [
      root,
      claimDisk('a', {}, { readOnly: true }),
      claimDisk('b', {}, { claimName: 'a-claim', readOnly: true }),
    ],
    want: `${ROOT} a:a-claim b:a-claim`,
    events: ['HotplugVolume'],
  },
  'a claim with a writer can have only one disk': {
    runs: [root, claimDisk('a', {}, { readOnly: true })],
    template: [root, claimDisk('a', {}, { readOnly: true }), claimDisk('b', {}, { claimName: 'a-claim' })],
    want: `${ROOT} a:a-claim`,
  },
  'a change of the order of disks needs a restart: it is the boot order': {
    runs: [fixedDisk('a'), fixedDisk('b')],
    template: [fixedDisk('b'), fixedDisk('a')],
    want: 'a:a-claim b:b-claim',
    restart: true,
  },
  'the order of disks does not matter if a boot order is set': {
    runs: [claimDisk('a', { bootOrder: 1 }), fixedDisk('b')],
    template: [fixedDisk('b'), claimDisk('a', { bootOrder: 1 })],
    want: 'a:a-claim b:b-claim',
  },
  'the position of a hotpluggable disk does not matter': {
    runs: [root, claimDisk('a'), fixedDisk('b')],
    template: [root, fixedDisk('b'), claimDisk('a')],
    want: `${ROOT} a:a-claim b:b-claim`,
  },
  'the position of a hotpluggable disk matters if it is the first': {
    runs: [root, claimDisk('a')],
    template: [claimDisk('a'), root],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
};

testHotplug(cases);

test('a replaced disk of the same name is plugged in by a second write', () => {
  const changed = claimDisk('a', { serial: 'x' }, { claimName: 'other' });
  const world = worldOf({ runs: [root, claimDisk('a')], template: [root, changed] });
  const once = { ...world, vmi: afterHotplug(world) };
  const twice = { ...once, vmi: afterHotplug(once) };
  assert.deepEqual([describeDevices(once.vmi), describeDevices(twice.vmi)], [ROOT, `${ROOT} a:other`]);
  assert.equal(planHotplug(twice), undefined);
});

/** Disks that come and go while the guest runs; others wait for a restart. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hotplug } from '#controllers/vm/hotplug.ts';
import {
  data,
  fixed,
  nic,
  worldOf,
  after,
  shown,
  type Case,
  root,
  ROOT,
  listed,
  proveHotplug,
} from '#controllers/vm/testing/hotplug-scene.ts';

const cases: Record<string, Case> = {
  'a disk that the template gets is plugged in, with its volume': {
    runs: [root],
    template: [root, data('a'), data('b', { disk: { bus: 'virtio' } })],
    want: `${ROOT} a:a-claim b:b-claim`,
    events: ['HotplugVolume', 'HotplugVolume'],
  },
  'in the order of the template, after what is there': {
    runs: [root, data('b')],
    template: [root, data('c'), data('b'), data('a')],
    want: `${ROOT} b:b-claim c:c-claim a:a-claim`,
    events: ['HotplugVolume', 'HotplugVolume'],
  },
  'a machine without devices can get one': {
    runs: [],
    template: [data('a')],
    want: 'a:a-claim',
    events: ['HotplugVolume'],
  },
  'one that is not hotpluggable waits for a restart': {
    runs: [root],
    template: [root, fixed('a')],
    want: ROOT,
    restart: true,
  },
  'so does one on another bus': {
    runs: [root],
    template: [root, data('a', { disk: { bus: 'sata' } })],
    want: ROOT,
    restart: true,
  },
  'and a CD-ROM': {
    runs: [root],
    template: [root, data('a', { disk: undefined, cdrom: { bus: 'scsi' } })],
    want: ROOT,
    restart: true,
  },
  'and a floppy': {
    runs: [root],
    template: [root, data('a', { disk: undefined, floppy: {} })],
    want: ROOT,
    restart: true,
  },
  'and one to boot from': { runs: [root], template: [root, data('a', { bootOrder: 1 })], want: ROOT, restart: true },
  'a LUN comes as a disk does': {
    runs: [root],
    template: [root, data('a', { disk: undefined, lun: { bus: 'scsi' } })],
    want: `${ROOT} a:a-claim`,
    events: ['HotplugVolume'],
  },
  'a disk that the template loses is unplugged': {
    runs: [root, data('a'), data('b')],
    template: [root, data('b')],
    want: `${ROOT} b:b-claim`,
    events: ['UnplugVolume'],
  },
  'also the last one': { runs: [data('a')], template: [], want: '', events: ['UnplugVolume'] },
  'one that is not hotpluggable stays until a restart': {
    runs: [root, fixed('a')],
    template: [root],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
  'what was plugged in for this run only stays': {
    runs: [root, data('a')],
    template: [root],
    note: '["a"]',
    want: `${ROOT} a:a-claim ["a"]`,
  },
  'and is the template’s own when that has it, too': {
    runs: [root, data('a'), data('b')],
    template: [root, data('a')],
    note: '["a","b"]',
    want: `${ROOT} a:a-claim b:b-claim ["b"]`,
  },
  'a note that says nothing any more goes': {
    runs: [root, data('a')],
    template: [root, data('a')],
    note: '["a"]',
    want: `${ROOT} a:a-claim`,
  },
  'where the note cannot be read nothing is taken away': {
    runs: [root, data('a')],
    template: [root],
    note: '{"a":',
    want: `${ROOT} a:a-claim {"a":`,
  },
  'a disk that is only attached is not in the guest': {
    runs: [root],
    template: [root, data('a', { plugged: false })],
    want: ROOT,
  },
  'one that is to be only attached is unplugged': {
    runs: [root, data('a')],
    template: [root, data('a', { plugged: false })],
    want: ROOT,
    events: ['UnplugVolume'],
  },
  'one that was only attached leaves the spec to come anew': {
    runs: [root, data('a', { plugged: false })],
    template: [root, data('a')],
    want: ROOT,
    events: ['UnplugVolume'],
  },
  'another claim makes it another disk': {
    runs: [root, data('a')],
    template: [root, data('a', {}, { claimName: 'other' })],
    want: ROOT,
    events: ['UnplugVolume'],
  },
  'another bus waits for a restart: the guest uses the disk': {
    runs: [root, data('a')],
    template: [root, data('a', { disk: { bus: 'virtio' } })],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
  'another serial, too': {
    runs: [root, data('a')],
    template: [root, data('a', { serial: 'x' })],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
  'and another cache': {
    runs: [root, data('a', { cache: 'none' })],
    template: [root, data('a', { cache: 'writeback' })],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
  'and whether the claim is only read': {
    runs: [root, data('a')],
    template: [root, data('a', {}, { readOnly: true })],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
  'unless it is not in the guest anyway': {
    runs: [root, data('a', { plugged: false })],
    template: [root, data('a', { plugged: false, serial: 'x' })],
    want: ROOT,
    events: ['UnplugVolume'],
  },
  'other words for the same do not': {
    runs: [root, data('a', { disk: {} })],
    template: [root, data('a', { disk: { bus: 'virtio', readonly: false }, plugged: true, optional: true })],
    want: `${ROOT} a:a-claim`,
  },
  'nor do they of what stays': {
    runs: [root, data('a', { disk: undefined }, { hotpluggable: undefined }), nic('n')],
    template: [
      root,
      data('a', { disk: { bus: 'virtio', readonly: false }, serial: '' }, { hotpluggable: undefined }),
      nic('n', { model: 'virtio', state: 'up' }),
    ],
    want: `${ROOT} a:a-claim n`,
  },
  'a disk of another claim comes back when the guest has let go of it': {
    runs: [root],
    template: [root, data('a', {}, { claimName: 'other' })],
    want: `${ROOT} a:other`,
    events: ['HotplugVolume'],
  },
  'and not before': {
    runs: [root],
    template: [root, data('a', {}, { claimName: 'other' })],
    hotplug: listed('disk-a', 'Unplugging'),
    want: ROOT,
  },
  'a disk that is no longer hotpluggable stays until a restart': {
    runs: [root, data('a')],
    template: [root, fixed('a')],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
  'a claim that another disk leaves is free after that': {
    runs: [root, data('a')],
    template: [root, data('b', {}, { claimName: 'a-claim' })],
    want: ROOT,
    events: ['UnplugVolume'],
  },
  'a claim that is plugged in by hand under another name stays there for this run': {
    runs: [root, data('a')],
    template: [root, data('b', {}, { claimName: 'a-claim' })],
    note: '["a"]',
    want: `${ROOT} a:a-claim ["a"]`,
    restart: true,
  },
  'a claim that is only read may be there twice': {
    runs: [root, data('a', {}, { readOnly: true })],
    template: [root, data('a', {}, { readOnly: true }), data('b', {}, { claimName: 'a-claim', readOnly: true })],
    want: `${ROOT} a:a-claim b:a-claim`,
    events: ['HotplugVolume'],
  },
  'but not where one writes': {
    runs: [root, data('a', {}, { readOnly: true })],
    template: [root, data('a', {}, { readOnly: true }), data('b', {}, { claimName: 'a-claim' })],
    want: `${ROOT} a:a-claim`,
  },
  'the order of disks is the order to boot in': {
    runs: [fixed('a'), fixed('b')],
    template: [fixed('b'), fixed('a')],
    want: 'a:a-claim b:b-claim',
    restart: true,
  },
  'unless that is given': {
    runs: [data('a', { bootOrder: 1 }), fixed('b')],
    template: [fixed('b'), data('a', { bootOrder: 1 })],
    want: 'a:a-claim b:b-claim',
  },
  'where a disk that comes and goes stands among the others means nothing': {
    runs: [root, data('a'), fixed('b')],
    template: [root, fixed('b'), data('a')],
    want: `${ROOT} a:a-claim b:b-claim`,
  },
  'unless it is the first': {
    runs: [root, data('a')],
    template: [data('a'), root],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
};

proveHotplug(cases);

test('another disk under the same name comes in a second write', () => {
  const changed = data('a', { serial: 'x' }, { claimName: 'other' });
  const world = worldOf({ runs: [root, data('a')], template: [root, changed] });
  const once = { ...world, vmi: after(world) };
  const twice = { ...once, vmi: after(once) };
  assert.deepEqual([shown(once.vmi), shown(twice.vmi)], [ROOT, `${ROOT} a:other`]);
  assert.equal(hotplug(twice), undefined);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HostDevice } from '#api/host-api.ts';
import { parseOldFormat } from '#node/host-api/sent/old-format.ts';
import { parseSentVm } from '#node/host-api/sent/sent-vm.ts';
import { aVm } from '#node/host-api/testing/host-scene.ts';

/** The sample of seed 003 (docs/seeds.md), with shortened paths. */
export const SAMPLE = {
  bridge: 'rhevm,rhevm,rhevm,rhevm,rhevm,rhevm,rhevm',
  acpiEnable: 'true',
  vmId: '27c61cea-f4fd-47e9-84e8-d1598f32ccc0',
  cpuType: 'Nehalem',
  smp: '1',
  macAddr:
    '00:1a:4a:16:99:42,00:1a:4a:16:99:43,00:1a:4a:16:99:44,00:1a:4a:16:99:45,00:1a:4a:16:99:46,00:1a:4a:16:99:47,00:1a:4a:16:99:48',
  boot: 'cdn',
  custom: {},
  memSize: 512,
  smpCoresPerSocket: '1',
  vmName: 'ingale',
  spiceMonitors: '4',
  floppy: '/rhev/data-center/p/d/images/1/win2k3.vfd',
  drives: [
    { domainID: 'd', format: 'cow', bus: '0', boot: 'true', volumeID: 'v1', imageID: 'i1', poolID: 'p', if: 'virtio' },
    { domainID: 'd', format: 'raw', bus: '1', boot: 'false', volumeID: 'v2', imageID: 'i2', poolID: 'p', if: 'virtio' },
    { index: '0', domainID: 'd', format: 'raw', volumeID: 'v3', imageID: 'i3', poolID: 'p', if: 'ide' },
  ],
  cdrom: '/rhev/data-center/p/d/images/1/windows.iso',
  nicModel: 'pv,pv,pv,pv,rtl8139,e1000,e1000',
  soundDevice: 'ich6',
  display: 'qxl',
};

function summarize(device: HostDevice): string {
  const { type, device: kind, iface, index, nicModel, macAddr, network, path, bootOrder } = device;
  const words = [iface, index, nicModel, macAddr, network, path, bootOrder && `boot ${bootOrder}`];
  return [`${type}/${kind}`, ...words.filter((word) => word !== undefined && word !== '')].join(' ');
}

function convert(vm: Record<string, unknown>): string[] {
  const errors: string[] = [];
  const devices = parseOldFormat({ display: 'vnc', ...vm }, errors);
  return errors.length > 0 ? errors : devices.map(({ device }) => summarize(device));
}

const CD = 'disk/cdrom ide 2';
const VIDEO = 'video/cirrus';
const ide = (count: number) => Array.from({ length: count }, (_, i) => ({ if: 'ide', path: `${i}` }));

const cases: Record<string, { vm: Record<string, unknown>; want: string[] }> = {
  'always adds a CD-ROM drive': { vm: {}, want: [VIDEO, CD] },
  'inserts a CD into the drive': { vm: { cdrom: 'a.iso' }, want: [VIDEO, `${CD} a.iso`] },
  'adds a floppy drive only with a floppy': { vm: { floppy: 'a.vfd' }, want: [VIDEO, CD, 'disk/floppy fdc 0 a.vfd'] },
  'adds a video card for each monitor of spice': {
    vm: { display: 'qxl', spiceMonitors: '2' },
    want: ['video/qxl', 'video/qxl', CD],
  },
  'adds one video card by default': { vm: { display: 'qxlnc' }, want: ['video/qxl', CD] },
  'refuses five monitors': {
    vm: { display: 'qxl', spiceMonitors: 5 },
    want: ['spiceMonitors: 5; expected 1 to 4'],
  },
  'adds a sound card': { vm: { soundDevice: 'ac97' }, want: [VIDEO, CD, 'sound/ac97'] },
  'leaves index 2 on ide to the CD-ROM drive': {
    vm: { drives: ide(3) },
    want: [VIDEO, CD, 'disk/disk ide 0 0', 'disk/disk ide 1 1', 'disk/disk ide 3 2'],
  },
  'refuses a fourth drive on ide': {
    vm: { drives: ide(4) },
    want: ['drives: 4 disks on ide; expected at most 3 beside the CD-ROM drive'],
  },
  'converts hda to hdd to drives': {
    vm: { hda: 'a', hdd: 'd', drives: [{ if: 'ide', path: 'x' }] },
    want: [VIDEO, CD, 'disk/disk ide 0 a', 'disk/disk ide 3 d', 'disk/disk ide 1 x'],
  },
  'repeats the last MAC address and bridge if there are fewer than models': {
    vm: { macAddr: 'm1,m2', nicModel: 'pv,e1000,rtl8139', bridge: 'b1' },
    want: [
      VIDEO,
      CD,
      'interface/bridge virtio m1 b1',
      'interface/bridge e1000 m2 b1',
      'interface/bridge rtl8139 m2 b1',
    ],
  },
  'refuses fewer models than MAC addresses': {
    vm: { macAddr: 'm1,m2', nicModel: 'pv' },
    want: ['nicModel: 1 models; expected 2, one for each network card'],
  },
  'refuses fewer models than bridges': {
    vm: { macAddr: 'm1', nicModel: '', bridge: 'b1,b2' },
    want: ['nicModel: 0 models; expected 2, one for each network card'],
  },
  'refuses models without MAC addresses': {
    vm: { nicModel: 'pv' },
    want: ['macAddr: nothing; expected one for each network card'],
  },
  'refuses drives that are not a list': {
    vm: { drives: { a: 1 } },
    want: ['drives: expected a list of at most 200 drives'],
  },
};

for (const [name, { vm, want }] of Object.entries(cases)) {
  test(name, () => assert.deepEqual(convert(vm), want));
}

const VRAMS: readonly (readonly [number, string])[] = [
  [1, '65536'],
  [2, '65536'],
  [3, '32768'],
  [4, '32768'],
];
for (const [spiceMonitors, vram] of VRAMS) {
  test(`gives each of ${spiceMonitors} monitors ${vram} of video memory`, () => {
    const cards = parseOldFormat({ display: 'qxl', spiceMonitors }, []).filter(({ device }) => device.type === 'video');
    assert.deepEqual(
      cards.map(({ device }) => device.specParams),
      Array.from({ length: spiceMonitors }, () => ({ vram })),
    );
  });
}

function entriesOf(vm: Record<string, unknown>): string[] {
  const read = parseSentVm(vm);
  if ('errors' in read) return [...read.errors];
  return read.entries.map(({ id, device }) => `${id} ${summarize(device)}`);
}

test('converts the sample of seed 003 to devices in the old order, with boot orders', () => {
  const { boot: _boot, ...rest } = SAMPLE;
  assert.deepEqual(entriesOf({ ...rest, boot: 'dcn' }).slice(0, 10), [
    'dev-video0 video/qxl',
    'dev-video1 video/qxl',
    'dev-video2 video/qxl',
    'dev-video3 video/qxl',
    'disk-ide2 disk/cdrom ide 2 /rhev/data-center/p/d/images/1/windows.iso boot 1',
    'disk-fdc0 disk/floppy fdc 0 /rhev/data-center/p/d/images/1/win2k3.vfd',
    'disk-virtio0 disk/disk virtio 0 boot 2',
    'disk-virtio1 disk/disk virtio 1',
    'disk-ide0 disk/disk ide 0',
    'nic-net0 interface/bridge virtio 00:1a:4a:16:99:42 rhevm boot 3',
  ]);
});

test('boots from the disk if the old format has no boot string', () => {
  const drives = [
    { if: 'virtio', path: 'a' },
    { if: 'virtio', path: 'b', boot: 'True' },
  ];
  assert.deepEqual(
    entriesOf({ ...aVm, drives }).filter((line) => line.includes('boot')),
    ['disk-virtio1 disk/disk virtio 1 b boot 1'],
  );
});

/**
 * Machines of oVirt 3.0 keep their addresses: those that libvirt assigns to the domains that hosts of that time wrote. The
 * sample of the seed is sent to the host API, and the same machine is imported as an OVF.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatAddress } from '#api/devices/device-address.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { readLibvirt } from '#formats/libvirt/read-libvirt.ts';
import { readOvf } from '#formats/ovf/read-ovf.ts';
import { disk, diskItem, file, item, nicItem, ovirtOvf } from '#formats/testing/ovirt-ovf.ts';
import { placeAsLibvirt } from '#node/host-api/definition/place-as-libvirt.ts';
import { parseSentVm } from '#node/host-api/sent/sent-vm.ts';
import { domainOf, SEED_SAMPLE } from '#test/libvirt/mixes.ts';
import { openLibvirt, libvirtSkipReason } from '#test/support/libvirt.ts';

const volume = (id: string) => ({ domainID: 'd', volumeID: `v${id}`, imageID: `i${id}`, poolID: 'p' });

/** The sample of the seed, with shorter ids. */
const SAMPLE = {
  ...{
    bridge: Array.from({ length: 7 }, () => 'rhevm').join(),
    vmId: '27c61cea-f4fd-47e9-84e8-d1598f32ccc0',
    smp: '1',
  },
  ...{
    memSize: 512,
    boot: 'cdn',
    custom: {},
    vmName: 'ingale',
    soundDevice: 'ich6',
    display: 'qxl',
    spiceMonitors: '4',
  },
  macAddr: [2, 3, 4, 5, 6, 7, 8].map((digit) => `00:1a:4a:16:99:4${digit}`).join(),
  nicModel: 'pv,pv,pv,pv,rtl8139,e1000,e1000',
  floppy: '/rhev/data-center/p/d/images/1/win2k3.vfd',
  cdrom: '/rhev/data-center/p/d/images/1/windows.iso',
  drives: [
    { ...volume('1'), format: 'cow', bus: '0', boot: 'true', if: 'virtio' },
    { ...volume('2'), format: 'raw', bus: '1', boot: 'false', if: 'virtio' },
    { ...volume('3'), format: 'raw', index: '0', if: 'ide' },
  ],
};

const DISK_IDS = ['1', '2', '3'].map(
  (n) => [`0c1b6a1e-52a5-4a9e-8d0e-3e6f0a0d220${n}`, `7b5d4b0c-6a0a-4b8c-a5f1-9a5b1c7f330${n}`] as const,
);
const MODELS = { virtio: 3, rtl8139: 1, e1000: 2 } as const;

/** The same machine as an export of oVirt 3.0: a desktop with Windows 7. */
function sampleOvf(): string {
  const disks = DISK_IDS.map(([id, image], i) =>
    disk(id, image, `Drive ${i + 1}`, `ovf:disk-interface="${i < 2 ? 'VirtIO' : 'IDE'}" ovf:boot="${i === 0}"`),
  );
  const models = ['virtio', 'virtio', 'virtio', 'virtio', 'rtl8139', 'e1000', 'e1000'] as const;
  const items = [
    ...DISK_IDS.map(([id, image]) => diskItem(id, image)),
    ...models.map((model, i) => nicItem(`${i}`, `nic${i + 1}`, `00:1a:4a:16:99:4${i + 2}`, '', MODELS[model])),
    ...Array.from({ length: 4 }, (_, i) => item(20, `${i + 20}`, '<rasd:VirtualQuantity>4</rasd:VirtualQuantity>')),
  ];
  return ovirtOvf({
    version: '3.0.0.0',
    files: DISK_IDS.map(([id, image]) => file(id, image)).join(''),
    disks: disks.join(''),
    items: items.join(''),
    settings: '<VmType>0</VmType>',
  }).replace('<Description>other<', '<Description>Windows7<');
}

/** Returns the address of each device, by its kind and its number among that kind. */
function placesOf(rows: readonly LearnedDevice[]): Record<string, string> {
  const places: Record<string, string> = {};
  const counts = new Map<string, number>();
  for (const row of rows) {
    const kind = kindOf(row);
    if (kind === undefined) continue;
    const number = counts.get(kind) ?? 0;
    counts.set(kind, number + 1);
    places[`${kind} ${number}`] = formatAddress({ address: row.address }).replace(/^drive /, '');
  }
  return places;
}

const KINDS: ReadonlySet<string> = new Set(['interface', 'sound', 'video']);

/** Returns undefined for devices that are not compared: controllers of the chipset, and drives that an OVF of 3.0 does not name. */
function kindOf({ type, device, id, address }: LearnedDevice): string | undefined {
  if (type === 'disk')
    return device === 'disk'
      ? address?.['type'] === 'drive' || id.includes('ide')
        ? 'ide disk'
        : 'virtio disk'
      : undefined;
  if (type === 'controller') return device === 'virtio-serial' ? device : undefined;
  return KINDS.has(type) ? type : undefined;
}

test(
  "machines of oVirt 3.0 have the addresses that libvirt assigns: the seed's sample",
  { skip: libvirtSkipReason() },
  async (t) => {
    const [defined = ''] = await openLibvirt(t).define([domainOf({ chipset: 'i440fx', devices: SEED_SAMPLE })]);
    const want = placesOf(readLibvirt(defined).rows);
    assert.equal(Object.keys(want).length, 16);

    await t.test('sent to the host API in the old format', () => {
      const vm = parseSentVm(SAMPLE);
      assert.ok(!('errors' in vm));
      const { rows } = placeAsLibvirt(vm.entries, { machine: 'pc' });
      // The host leaves the slot of the agent's controller empty.
      const { 'virtio-serial 0': agent, ...sent } = want;
      assert.deepEqual(placesOf(rows), sent);
      assert.ok(!Object.values(placesOf(rows)).includes(agent ?? ''));
    });

    await t.test('imported from an OVF of 3.0', () => assert.deepEqual(placesOf(readOvf(sampleOvf()).rows), want));
  },
);

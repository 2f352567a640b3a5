/** A VM is exported from one data directory and imported into another: the guest has the same identity and the same data. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { formatAddress } from '#api/devices/device-address.ts';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { GUEST_IMAGE } from '#api/names.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import type { GuestReport } from '#cli/tour/guest-report.ts';
import { readLibvirt } from '#formats/libvirt/read-libvirt.ts';
import {
  DISK_1,
  DISK_2,
  IMAGE_1,
  IMAGE_2,
  disk,
  diskItem,
  file,
  item,
  nicItem,
  ovirtOvf,
} from '#formats/testing/ovirt-ovf.ts';
import * as mixes from '#test/libvirt/mixes.ts';
import { openLibvirt, libvirtSkipReason } from '#test/support/libvirt.ts';
import { startRealPlane, type RealPlane } from '#test/support/real-guests.ts';

const MIB = 1024 * 1024;

const VM = { namespace: 'default', name: 'traveller' };
const virtctl = new URL('../../virtctl', import.meta.url).pathname;

function run(plane: RealPlane, ...args: string[]) {
  return promisify(execFile)(virtctl, ['--kubeconfig', join(plane.dataDir, 'kubeconfig'), ...args]);
}

const kernelBoot = { kernelArgs: 'console=ttyS0 quiet no_timer_check', container: { image: GUEST_IMAGE } };

/** Everything that identifies a guest. Linux names disks in the order in which it finds them, so names are left out. */
function identityOf({ facts, pci, disks, nics }: GuestReport): object {
  const places = Object.fromEntries(disks.map(({ serial, pci: at, sectors }) => [serial, [at, sectors]]));
  const { uuid, serial, machine, bios, cpus } = facts;
  return { uuid, serial, machine, bios, cpus, pci, places, nics };
}

async function createVm(plane: RealPlane): Promise<void> {
  const names = ['a', 'b', 'c'];
  for (const name of names) {
    const resources = { requests: { storage: '16Mi' } };
    await plane.create(PERSISTENT_VOLUME_CLAIMS, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace: 'default', name },
      spec: { accessModes: ['ReadWriteOnce'], resources },
    });
  }
  await plane.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { ...VM },
    spec: {
      runStrategy: 'Always',
      template: {
        spec: {
          domain: {
            memory: { guest: '160Mi' },
            firmware: { kernelBoot },
            devices: {
              tpm: { persistent: true },
              disks: [...names, 'seed'].map((name) => ({
                name,
                serial: name.toUpperCase(),
                disk: { bus: 'virtio' as const },
              })),
              interfaces: [{ name: 'default', masquerade: {} }],
            },
          },
          networks: [{ name: 'default', pod: {} }],
          volumes: [
            ...names.map((name) => ({ name, persistentVolumeClaim: { claimName: name } })),
            { name: 'seed', cloudInitNoCloud: { userData: '#cloud-config\n' } },
          ],
        },
      },
    },
  });
}

/** Removes the disk in the middle: an import that only counts disks would move the last one. */
async function removeSecondDisk(plane: RealPlane): Promise<void> {
  const body = [
    { op: 'remove', path: '/spec/template/spec/domain/devices/disks/1' },
    { op: 'remove', path: '/spec/template/spec/volumes/1' },
  ];
  await plane.client.patch(VIRTUAL_MACHINES, VM, { type: 'json', body });
}

async function stopVm(plane: RealPlane): Promise<void> {
  await plane.put(`virtualmachines/${VM.name}/stop`);
  await plane
    .guest(VM.name)
    .awaitVm('is stopped', ({ status }) => status?.printableStatus === 'Stopped' && status.created !== true);
}

/** Returns the boot order in the exported files of other formats. */
async function bootOf(plane: RealPlane) {
  const { stdout: ovf } = await run(plane, 'export', 'ovf', VM.name);
  const { stdout: libvirt } = await run(plane, 'export', 'libvirt', VM.name);
  const all = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, word]) => word);
  const booted = (text: string) => all(text, /<BootOrder>([1-9]\d*)<\/BootOrder>/g);
  return {
    ovf: { marked: all(ovf, /ovf:boot="true" ovf:disk-alias="(\w+)"/g), orders: booted(ovf) },
    libvirt: all(libvirt, /<boot order="(\d+)"/g),
  };
}

const BOOT = { marked: ['a'], orders: ['1', '2', '3'] };

test('an OVA imports the selfsame machine into a new data directory', async (t: TestContext) => {
  const dir = mkdtempSync(join(tmpdir(), 'selfsame-ova-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, 'traveller.ova');

  const home = await startRealPlane(t, { nodes: 1, flags: ['--guest-subnets', 'none'] });
  await createVm(home);
  const first = await home.guest(VM.name).awaitBoot();
  const data = first.disks.find(({ serial }) => serial === 'C');
  await home.guest(VM.name).runCommand(`nvset travels-along\nwrite ${data?.name} selfsame`, /GUEST wrote/);
  await removeSecondDisk(home);
  await stopVm(home);
  assert.deepEqual(
    await bootOf(home),
    { ovf: BOOT, libvirt: ['1', '2', '3'] },
    'the boot order is exported although the spec does not name one',
  );
  await run(home, 'export', 'ovf', VM.name, '--ova', file);

  const abroad = await startRealPlane(t, { nodes: 1, flags: ['--guest-subnets', 'none'] });
  await run(abroad, 'import', 'ovf', file);
  assert.equal((await run(abroad, 'identity', 'diff', VM.name)).stdout, '', 'the import changes nothing');
  // The kernel of the built-in guest is on the node and not in the exported files; its disks contain no system.
  const body = { spec: { template: { spec: { domain: { firmware: { kernelBoot } } } } } };
  await abroad.client.patch(VIRTUAL_MACHINES, VM, { type: 'merge', body });
  await abroad.put(`virtualmachines/${VM.name}/start`);
  const again = await abroad.guest(VM.name).awaitBoot();

  const gone = first.disks.find(({ serial }) => serial === 'B');
  const pci = first.pci.filter((address) => address !== gone?.pci);
  const disks = first.disks.filter((disk) => disk !== gone);
  assert.deepEqual(identityOf(again), identityOf({ ...first, pci, disks }));
  assert.deepEqual(Object.keys(first.cloudInit).toSorted(), ['meta-data', 'user-data']);
  assert.deepEqual(again.cloudInit, first.cloudInit, 'cloud-init sees the same instance-id, host name and data');
  assert.match(again.facts['tpm.nv'] ?? '', /^travels-along/, 'the TPM state is imported');
  const { name } = again.disks.find(({ serial }) => serial === 'C') ?? { name: '' };
  assert.match(await abroad.guest(VM.name).runCommand(`read ${name}`, /GUEST read \S+ \S+/), /GUEST read \S+ selfsame/);
  assert.deepEqual((await bootOf(abroad)).ovf, BOOT, 'the boot order is imported');
  await stopVm(abroad);

  await t.test('an OVF of oVirt 3.0 imports a machine with the device addresses that libvirt assigned', (inner) =>
    importOld(abroad, dir, inner),
  );
});

/** A desktop with two disks and an interface. Its OVF has no addresses. */
const OLD_OVF = ovirtOvf({
  version: '3.0.0.0',
  files: file(DISK_1, IMAGE_1, MIB) + file(DISK_2, IMAGE_2, MIB),
  disks: [
    disk(DISK_1, IMAGE_1, 'Drive 1', 'ovf:disk-interface="VirtIO" ovf:boot="true"'),
    disk(DISK_2, IMAGE_2, 'Drive 2', 'ovf:disk-interface="VirtIO" ovf:boot="false"'),
  ]
    .join('')
    .replaceAll('ovf:size="10"', 'ovf:size="1"'),
  items: [
    diskItem(DISK_1, IMAGE_1),
    diskItem(DISK_2, IMAGE_2),
    nicItem('3', 'nic1', '00:1a:4a:16:99:01'),
    item(20, '5', '<rasd:VirtualQuantity>1</rasd:VirtualQuantity>'),
  ].join(''),
  settings: '<VmType>0</VmType>',
}).replace('<rasd:VirtualQuantity>2048<', '<rasd:VirtualQuantity>160<');

const OLD_HARDWARE = [
  ...[mixes.vd(0), mixes.vd(1), mixes.nic(1), mixes.video('cirrus'), mixes.sound('ich6')],
  ...[mixes.controller('virtio-serial', "index='0' ports='16'"), mixes.balloon('none')],
];

async function importOld(plane: RealPlane, dir: string, t: TestContext): Promise<void> {
  for (const [id, image] of [
    [DISK_1, IMAGE_1],
    [DISK_2, IMAGE_2],
  ] as const) {
    mkdirSync(join(dir, id));
    writeFileSync(join(dir, id, image), Buffer.alloc(MIB));
  }
  const path = join(dir, 'old.ovf');
  writeFileSync(path, OLD_OVF);
  const configuration = { emulatedMachines: ['q35*', 'pc-q35*', 'pc', 'pc-i440fx*'] };
  const kubevirt = { namespace: 'selfsame-system', name: 'kubevirt' };
  await plane.client.patch(KUBEVIRTS, kubevirt, { type: 'merge', body: { spec: { configuration } } });
  await run(plane, 'import', 'ovf', path, '--name', 'old', '--network', 'ovirtmgmt=pod');
  // The built-in guest reports on a serial port, which machines of oVirt 3.0 did not have.
  const devices = { autoattachSerialConsole: true };
  const body = { spec: { template: { spec: { domain: { firmware: { kernelBoot }, devices } } } } };
  await plane.client.patch(VIRTUAL_MACHINES, { namespace: 'default', name: 'old' }, { type: 'merge', body });
  await plane.put('virtualmachines/old/start');
  const { pci } = await plane.guest('old').awaitBoot();
  // Slots 0 and 1 belong to the chipset.
  const ofDevices = pci.filter((address) => !/^0000:00:0[01]\./.test(address));
  assert.deepEqual(
    ofDevices.toSorted(),
    [2, 3, 4, 5, 6, 7].map((slot) => `0000:00:0${slot}.0`),
  );
  if (libvirtSkipReason() !== undefined) return;
  const [defined = ''] = await openLibvirt(t).define([mixes.domainOf({ chipset: 'i440fx', devices: OLD_HARDWARE })]);
  const places = readLibvirt(defined).rows.map((row) => formatAddress(row));
  assert.deepEqual(ofDevices.toSorted(), places.filter((place) => /^0000:00:0[2-9]/.test(place)).toSorted());
}

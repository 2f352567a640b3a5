/** A machine leaves one data directory as a file and comes to another: the guest finds itself, and everything in its place. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { GUEST_IMAGE } from '#api/names.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import type { GuestReport } from '#cli/tour/guest-report.ts';
import { startRealPlane, type RealPlane } from '#test/support/real-guests.ts';

const VM = { namespace: 'default', name: 'traveller' };
const virtctl = new URL('../../virtctl', import.meta.url).pathname;

function run(plane: RealPlane, ...args: string[]) {
  return promisify(execFile)(virtctl, ['--kubeconfig', join(plane.dataDir, 'kubeconfig'), ...args]);
}

const kernelBoot = { kernelArgs: 'console=ttyS0 quiet', container: { image: GUEST_IMAGE } };

/** All that a guest may know itself by. Linux names disks in the order in which it finds them: that is not ours. */
function identityOf({ facts, pci, disks, nics }: GuestReport): object {
  const places = Object.fromEntries(disks.map(({ serial, pci: at, sectors }) => [serial, [at, sectors]]));
  const { uuid, serial, machine, bios, cpus } = facts;
  return { uuid, serial, machine, bios, cpus, pci, places, nics };
}

async function make(plane: RealPlane): Promise<void> {
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
              disks: names.map((name) => ({ name, serial: name.toUpperCase(), disk: { bus: 'virtio' as const } })),
              interfaces: [{ name: 'default', masquerade: {} }],
            },
          },
          networks: [{ name: 'default', pod: {} }],
          volumes: names.map((name) => ({ name, persistentVolumeClaim: { claimName: name } })),
        },
      },
    },
  });
}

/** One is taken out between the others: whoever only counted would move the last. */
async function removeSecondDisk(plane: RealPlane): Promise<void> {
  const body = [
    { op: 'remove', path: '/spec/template/spec/domain/devices/disks/1' },
    { op: 'remove', path: '/spec/template/spec/volumes/1' },
  ];
  await plane.client.patch(VIRTUAL_MACHINES, VM, { type: 'json', body });
}

async function stopped(plane: RealPlane): Promise<void> {
  await plane.put(`virtualmachines/${VM.name}/stop`);
  await plane
    .guest(VM.name)
    .untilVm('is stopped', ({ status }) => status?.printableStatus === 'Stopped' && status.created !== true);
}

/** What files of others say of the boot order: the marks and orders of disks. */
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

const BOOT = { marked: ['a'], orders: ['1', '2'] };

test('an OVA brings the selfsame machine to a fresh data directory', async (t: TestContext) => {
  const dir = mkdtempSync(join(tmpdir(), 'selfsame-ova-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, 'traveller.ova');

  const home = await startRealPlane(t, { nodes: 1 });
  await make(home);
  const first = await home.guest(VM.name).boots();
  const data = first.disks.find(({ serial }) => serial === 'C');
  await home.guest(VM.name).says(`nvset travels-along\nwrite ${data?.name} selfsame`, /GUEST wrote/);
  await removeSecondDisk(home);
  await stopped(home);
  assert.deepEqual(await bootOf(home), { ovf: BOOT, libvirt: ['1', '2'] }, 'the order that no spec names is written');
  await run(home, 'export', 'ovf', VM.name, '--ova', file);

  const abroad = await startRealPlane(t, { nodes: 1 });
  await run(abroad, 'import', 'ovf', file);
  assert.equal((await run(abroad, 'identity', 'diff', VM.name)).stdout, '', 'nothing will be different');
  // The kernel of the test guest is the node's, and no file brings it along; its disks hold no system.
  const body = { spec: { template: { spec: { domain: { firmware: { kernelBoot } } } } } };
  await abroad.client.patch(VIRTUAL_MACHINES, VM, { type: 'merge', body });
  await abroad.put(`virtualmachines/${VM.name}/start`);
  const again = await abroad.guest(VM.name).boots();

  const gone = first.disks.find(({ serial }) => serial === 'B');
  const pci = first.pci.filter((address) => address !== gone?.pci);
  const disks = first.disks.filter((disk) => disk !== gone);
  assert.deepEqual(identityOf(again), identityOf({ ...first, pci, disks }));
  assert.match(again.facts['tpm.nv'] ?? '', /^travels-along/, 'what its TPM holds came along');
  const { name } = again.disks.find(({ serial }) => serial === 'C') ?? { name: '' };
  assert.match(await abroad.guest(VM.name).says(`read ${name}`, /GUEST read \S+ \S+/), /GUEST read \S+ selfsame/);
  assert.deepEqual((await bootOf(abroad)).ovf, BOOT, 'the boot order came along');
});

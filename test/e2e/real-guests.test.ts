/** Real guests, end to end: they see what the spec requests, and it stays so. One plane for all tests; guests are shared. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { GUEST_IMAGE } from '#api/names.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { isRestoreFinished, VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import {
  isSnapshotFinished,
  VIRTUAL_MACHINE_SNAPSHOTS,
  type VirtualMachineSnapshot,
} from '#api/virtual-machine-snapshot/kind.ts';
import { isTrue } from '#kube/conditions.ts';
import { PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { apiVersionOf } from '#kube/meta.ts';
import { startRealPlane, type RealGuest, type RealPlane } from '#test/support/real-guests.ts';
import type { GuestReport } from '#cli/tour/guest-report.ts';

const UUID = '5d307ca9-b3ef-428c-8861-06e72d69f223';
const MAC = '02:00:00:00:be:ef';
const USER_DATA = '#cloud-config\nhostname: selfsame\n';

const cleanUps: (() => unknown)[] = [];
let plane: RealPlane;

before(async () => {
  plane = await startRealPlane({ after: (fn) => void cleanUps.unshift(fn) });
});

after(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

function aVm(name: string, spec: VirtualMachine['spec']['template'], runStrategy = 'Always'): VirtualMachine {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: 'default' },
    spec: { runStrategy, template: spec },
  };
}

function aClaim(name: string): PersistentVolumeClaim {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'default' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '64Mi' } } },
  };
}

const kernelBoot = (kernelArgs: string) => ({ kernelArgs, container: { image: GUEST_IMAGE } });

async function launch(vm: VirtualMachine): Promise<{ guest: RealGuest; report: GuestReport }> {
  await plane.create(VIRTUAL_MACHINES, vm);
  const guest = plane.guest(vm.metadata.name ?? '');
  return { guest, report: await guest.awaitBoot() };
}

/** The identity of the machine. Linux names disks in the order in which it finds them, so names are left out. */
function identityOf({ facts, pci, disks, nics }: GuestReport): object {
  const found = disks
    .map(({ pci: at, serial, sectors, readonly }) => ({ at, serial, sectors, readonly }))
    .sort((a, b) => (a.serial < b.serial ? -1 : 1));
  return { facts: { ...facts, bootid: '', memory: '' }, pci, disks: found, nics };
}

const vmNamed = (name: string) => ({ apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name });

async function snapshotOf(vm: string): Promise<VirtualMachineSnapshot> {
  const metadata = { name: `${vm}-snapshot`, namespace: 'default' };
  const kind = 'VirtualMachineSnapshot';
  const spec = { source: vmNamed(vm) };
  const made = { apiVersion: apiVersionOf(VIRTUAL_MACHINE_SNAPSHOTS), kind, metadata, spec };
  await plane.create(VIRTUAL_MACHINE_SNAPSHOTS, made);
  const taken = await plane.awaitObject(
    VIRTUAL_MACHINE_SNAPSHOTS,
    metadata.name,
    (snapshot) => snapshot !== undefined && isSnapshotFinished(snapshot),
  );
  assert.equal(taken?.status?.phase, 'Succeeded', JSON.stringify(taken?.status));
  return taken;
}

/** Restores the snapshot of snapshotOf. */
async function restoreOf(vm: string, name: string): Promise<void> {
  const kind = 'VirtualMachineRestore';
  const from = { virtualMachineSnapshotName: `${vm}-snapshot`, targetReadinessPolicy: 'StopTarget' } as const;
  const made = { apiVersion: apiVersionOf(VIRTUAL_MACHINE_RESTORES), kind, metadata: { name, namespace: 'default' } };
  await plane.create(VIRTUAL_MACHINE_RESTORES, { ...made, spec: { target: vmNamed(vm), ...from } });
  const restore = await plane.awaitObject(
    VIRTUAL_MACHINE_RESTORES,
    name,
    (one) => one !== undefined && isRestoreFinished(one),
  );
  assert.equal(restore?.status?.complete, true, JSON.stringify(restore?.status));
  // The VM can start when its status says that it is not held any more.
  await plane.awaitObject(VIRTUAL_MACHINES, vm, (one) => one?.status?.restoreInProgress === undefined);
}

const bySerial = (report: GuestReport, serial: string) => report.disks.find((disk) => disk.serial === serial);

test('a BIOS guest has the firmware, disks and NICs of its spec, and keeps them', async (t) => {
  for (const name of ['bios-root', 'bios-base']) await plane.create(PERSISTENT_VOLUME_CLAIMS, aClaim(name));
  const { guest, report } = await launch(
    aVm('bios', {
      spec: {
        domain: {
          cpu: { cores: 2 },
          memory: { guest: '160Mi' },
          firmware: {
            uuid: UUID,
            serial: 'SN-42',
            kernelBoot: kernelBoot('console=ttyS0 quiet no_timer_check guest.wait=5'),
          },
          devices: {
            disks: [
              { name: 'root', serial: 'ROOT', disk: { bus: 'virtio' }, bootOrder: 1 },
              { name: 'scratch', serial: 'SCRATCH', disk: { bus: 'sata' } },
              { name: 'scsi', serial: 'SCSI', disk: { bus: 'scsi', readonly: true } },
              { name: 'overlay', serial: 'OVER', disk: { bus: 'virtio' } },
              { name: 'cloudinit', cdrom: { bus: 'sata' } },
            ],
            interfaces: [{ name: 'first', model: 'e1000e', masquerade: {} }],
            rng: {},
          },
        },
        networks: [{ name: 'first', pod: {} }],
        volumes: [
          { name: 'root', persistentVolumeClaim: { claimName: 'bios-root' } },
          { name: 'scratch', emptyDisk: { capacity: '32Mi' } },
          { name: 'scsi', emptyDisk: { capacity: '16Mi' } },
          { name: 'overlay', ephemeral: { persistentVolumeClaim: { claimName: 'bios-base' } } },
          { name: 'cloudinit', cloudInitNoCloud: { userData: USER_DATA } },
        ],
      },
    }),
  );

  await t.test('the guest sees the hardware of its spec', async () => {
    assert.equal(report.facts['uuid'], UUID);
    assert.equal(report.facts['serial'], 'SN-42');
    assert.match(report.facts['bios'] ?? '', /^SeaBIOS/);
    assert.equal(report.facts['cpus'], '2 sockets=1');
    assert.equal(report.facts['efi'], 'absent');
    assert.equal(report.facts['rng'], 'virtio_rng.0');
    assert.equal(bySerial(report, 'ROOT')?.sectors, (64 * 1024 * 1024) / 512);
    assert.equal(bySerial(report, 'SCRATCH')?.pci, '0000:00:1f.2');
    assert.deepEqual([bySerial(report, 'SCSI')?.pci, bySerial(report, 'SCSI')?.readonly], ['0000:00:06.0', true]);
    assert.deepEqual(
      report.nics.map(({ driver, pci }) => [driver, pci]),
      [['e1000e', '0000:01:00.0']],
    );
    assert.equal(report.cloudInit['user-data'], createHash('sha256').update(USER_DATA).digest('hex'));
  });

  await t.test('the identity record agrees with the guest', async () => {
    const vmi = await guest.vmi();
    assert.equal(vmi.status?.phase, 'Running');
    assert.equal(vmi.status.machine?.type, report.facts['machine']);
    assert.match(report.facts['machine'] ?? '', /^pc-q35-\d/);
    const identity = await plane.client.get(VIRTUAL_MACHINE_IDENTITIES, { namespace: 'default', name: 'bios' });
    const root = identity.status?.devices?.find(({ name }) => name === 'root');
    const { bus = '' } = root?.address ?? {};
    assert.equal(`0000:${bus.slice(2)}:00.0`, bySerial(report, 'ROOT')?.pci);
    const interfaces = identity.spec.interfaces?.map(({ name, macAddress }) => ({ name, macAddress }));
    assert.deepEqual(interfaces, [{ name: 'first', macAddress: report.nics[0]?.mac }]);
  });

  await t.test('the console, the network and the disk work', async () => {
    assert.match(await guest.runCommand('dhcp', /GUEST dhcp \S+/), /GUEST dhcp 10\.0\.2\.2 /);
    const { name } = bySerial(report, 'ROOT')!;
    await guest.runCommand(`write ${name} selfsame`, /GUEST wrote/);
  });

  await t.test('pause stops the guest, and unpause resumes it', async () => {
    await plane.put('virtualmachineinstances/bios/pause');
    await guest.awaitVmi('is paused', (vmi) => isTrue(vmi?.status?.conditions, 'Paused'));
    await plane.put('virtualmachineinstances/bios/unpause');
    await guest.awaitVmi('is not paused', (vmi) => !isTrue(vmi?.status?.conditions, 'Paused'));
    await guest.runCommand('probe after-pause', /GUEST END after-pause/);
  });

  await t.test('kill -9 of the agents and of the server leaves the guest running', async () => {
    const agents = plane.processes().filter(({ command }) => command.endsWith('/node'));
    assert.equal(agents.length, 2);
    for (const { pid } of agents) process.kill(pid, 'SIGKILL');
    await plane.server.kill('SIGKILL');
    await plane.restart();
    await guest.awaitVmi('is ready again', (vmi) => isTrue(vmi?.status?.conditions, 'Ready'));
    const text = await guest.runCommand('probe after-kill', /GUEST END after-kill/);
    assert.ok(text.includes(`GUEST bootid ${report.facts['bootid']}`), text);
  });

  await t.test('a restart through ACPI starts the selfsame machine', async () => {
    const before = await guest.vmi();
    await plane.put('virtualmachines/bios/restart');
    await guest.awaitVmi('is another instance', (vmi) => vmi !== undefined && vmi.metadata.uid !== before.metadata.uid);
    const again = await guest.awaitBoot();
    assert.notEqual(again.facts['bootid'], report.facts['bootid']);
    assert.deepEqual(identityOf(again), identityOf(report));
    const { name } = bySerial(again, 'ROOT')!;
    assert.match(await guest.runCommand(`read ${name}`, /GUEST read \S+ \S+/), /GUEST read \S+ selfsame/);
  });

  await t.test('soft reboot and reset boot the guest again in the same instance', async () => {
    const { uid } = (await guest.vmi()).metadata;
    for (const verb of ['softreboot', 'reset']) {
      const { bootid = '' } = (await guest.awaitBoot()).facts;
      await plane.put(`virtualmachineinstances/bios/${verb}`);
      assert.deepEqual(identityOf(await guest.awaitBoot({ afterBootId: bootid })), identityOf(report), verb);
    }
    assert.equal((await guest.vmi()).metadata.uid, uid);
  });

  await t.test('a snapshot of the running guest can be restored after its disk was overwritten', async () => {
    const { bootid = '' } = (await guest.awaitBoot()).facts;
    const { name } = bySerial(await guest.awaitBoot(), 'ROOT')!;
    const taken = await snapshotOf('bios');
    assert.deepEqual(taken.status?.indications, ['Online', 'NoGuestAgent']);
    assert.deepEqual(taken.status.snapshotVolumes?.includedVolumes, ['root']);
    await guest.runCommand(`write ${name} wiped`, /GUEST wrote/);
    assert.match(await guest.runCommand(`read ${name}`, /GUEST read \S+ \S+/), /GUEST read \S+ wiped/);
    assert.match(
      await guest.runCommand('probe after-snapshot', /GUEST END after-snapshot/),
      new RegExp(`bootid ${bootid}`),
    );

    await restoreOf('bios', 'in-place');
    await plane.put('virtualmachines/bios/start');
    const again = await guest.awaitBoot({ afterBootId: bootid });
    assert.deepEqual(identityOf(again), identityOf(report));
    const disk = bySerial(again, 'ROOT')!.name;
    assert.match(await guest.runCommand(`read ${disk}`, /GUEST read \S+ \S+/), /GUEST read \S+ selfsame/);
  });

  await t.test('a VM that was deleted with its disks can be restored from the snapshot', async () => {
    const { bootid = '' } = (await guest.awaitBoot()).facts;
    await plane.client.delete(VIRTUAL_MACHINES, { namespace: 'default', name: 'bios' });
    await plane.awaitObject(VIRTUAL_MACHINES, 'bios', (vm) => vm === undefined);
    await plane.client.delete(PERSISTENT_VOLUME_CLAIMS, { namespace: 'default', name: 'bios-root' });
    await plane.awaitObject(VIRTUAL_MACHINE_IDENTITIES, 'bios', (record) => record === undefined);

    await restoreOf('bios', 'anew');
    await plane.put('virtualmachines/bios/start');
    const again = await guest.awaitBoot({ afterBootId: bootid });
    assert.deepEqual(identityOf(again), identityOf(report));
    const disk = bySerial(again, 'ROOT')!.name;
    assert.match(await guest.runCommand(`read ${disk}`, /GUEST read \S+ \S+/), /GUEST read \S+ selfsame/);
  });

  await t.test('stop shuts the guest down and leaves no process', async () => {
    await plane.put('virtualmachines/bios/stop');
    await guest.awaitVm('is stopped', ({ status }) => status?.printableStatus === 'Stopped' && status.created !== true);
    assert.deepEqual(
      plane.processes().filter(({ command }) => command.includes('qemu')),
      [],
    );
  });
});

test('an EFI guest has secure boot and a TPM', async () => {
  const { guest, report } = await launch(
    aVm('efi', {
      spec: {
        domain: {
          memory: { guest: '256Mi' },
          features: { smm: { enabled: true } },
          firmware: { bootloader: { efi: {} }, kernelBoot: kernelBoot('console=ttyS0 quiet no_timer_check') },
          devices: { tpm: {}, interfaces: [{ name: 'default', masquerade: {}, macAddress: MAC }] },
        },
        networks: [{ name: 'default', pod: {} }],
      },
    }),
  );
  assert.deepEqual(
    report.nics.map(({ driver, mac }) => [driver, mac]),
    [['virtio_net', MAC]],
  );
  assert.match(report.facts['efi'] ?? '', /^present .*secureboot=1/);
  assert.equal(report.facts['tpm'], 'present v2');
  const { uuid } = (await guest.vm()).spec.template.spec?.domain.firmware ?? {};
  assert.equal(report.facts['uuid'], uuid);
  // A guest that shuts down by itself under Always is started again.
  await guest.runCommand('poweroff', /GUEST poweroff/);
  const again = await guest.awaitBoot({ afterBootId: report.facts['bootid'] ?? '' });
  assert.equal(again.facts['uuid'], uuid);
  await plane.client.delete(VIRTUAL_MACHINES, { namespace: 'default', name: 'efi' });
  await guest.awaitVmi('is gone', (vmi) => vmi === undefined);
});

/**
 * Stable device addresses as a real guest sees them: it lists its own PCI devices before and after everything that could
 * move one. One guest for all of it.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { GUEST_IMAGE } from '#api/names.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { lastReport, type GuestReport } from '#test/support/guest-report.ts';
import { startRealPlane, type RealGuest, type RealPlane } from '#test/support/real-guests.ts';

const VM = { namespace: 'default', name: 'stable' };

const cleanUps: (() => unknown)[] = [];
let plane: RealPlane;
let guest: RealGuest;

before(async () => {
  plane = await startRealPlane({ after: (fn) => void cleanUps.unshift(fn) }, { nodes: 1 });
  guest = plane.guest(VM.name);
});

after(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

const disk = (name: string) => ({ name, serial: name.toUpperCase(), disk: { bus: 'virtio' as const } });
const scratch = (name: string) => ({ name, emptyDisk: { capacity: '16Mi' } });

const spec: VmiSpec = {
  domain: {
    memory: { guest: '160Mi' },
    machine: { type: 'pc-q35-6.2' },
    firmware: { kernelBoot: { kernelArgs: 'console=ttyS0 quiet', container: { image: GUEST_IMAGE } } },
    devices: { disks: ['a', 'b', 'c'].map(disk), autoattachPodInterface: false, rng: {} },
  },
  volumes: ['a', 'b', 'c'].map(scratch),
};

/** PCI addresses of what comes and goes: disks by serial, NICs by MAC. */
function placesOf({ disks, nics }: GuestReport): Record<string, string> {
  return Object.fromEntries([
    ...disks.map(({ serial, pci }) => [serial, pci] as const),
    ...nics.map(({ mac, pci }) => [mac, pci] as const),
  ]);
}

let probes = 0;

/** What it sees now, without a boot. */
async function probe(): Promise<GuestReport> {
  const tag = `now-${++probes}`;
  const text = await guest.says(`probe ${tag}`, new RegExp(`GUEST END ${tag}`));
  return lastReport(text, tag)!;
}

async function untilSeen(what: string, isSo: (places: Record<string, string>) => boolean): Promise<GuestReport> {
  for (let tries = 0; tries < 100; tries++) {
    const report = await probe();
    if (isSo(placesOf(report))) return report;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  assert.fail(`the guest never saw that ${what}: ${JSON.stringify(placesOf(await probe()))}`);
}

/** Reads the VM, changes its template, writes it. */
async function edit(change: (template: VmiSpec) => void): Promise<void> {
  for (;;) {
    const vm: Stored<VirtualMachine> = await plane.client.get(VIRTUAL_MACHINES, VM);
    change(vm.spec.template.spec!);
    const answer = await plane.client.update(VIRTUAL_MACHINES, vm).catch((error: unknown) => error);
    if (!(answer instanceof Error)) return;
    if (!answer.message.includes('the object has been modified')) throw answer;
  }
}

async function restart(): Promise<GuestReport> {
  const { bootid = '' } = (await guest.boots()).facts;
  const { uid } = (await guest.vmi()).metadata;
  await plane.put(`virtualmachines/${VM.name}/restart`);
  await guest.until('is another instance', (vmi) => vmi !== undefined && vmi.metadata.uid !== uid);
  return guest.boots({ afterBootId: bootid });
}

test('what a guest has stays where it is', async (t) => {
  const runStrategy = 'Always';
  const manifest = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata: { ...VM } };
  await plane.create(VIRTUAL_MACHINES, { ...manifest, spec: { runStrategy, template: { spec } } });
  const first = placesOf(await guest.boots());
  assert.deepEqual(Object.keys(first).sort(), ['A', 'B', 'C']);

  await t.test('when a disk between others is removed, and a machine type of another version taken', async () => {
    await edit((template) => {
      template.domain.devices!.disks = [disk('c'), disk('a')];
      template.domain.machine = { type: 'pc-q35-7.2' };
      template.volumes = ['c', 'a'].map(scratch);
    });
    const report = await restart();
    assert.equal(report.facts['machine'], 'pc-q35-7.2');
    assert.deepEqual(placesOf(report), { A: first['A'], C: first['C'] });
  });

  await t.test('when disks are plugged in, and started with the next time', async () => {
    for (const [name, bus] of [
      ['hot-scsi', 'scsi'],
      ['hot-virtio', 'virtio'],
    ] as const) {
      const resources = { requests: { storage: '16Mi' } };
      const metadata = { namespace: 'default', name };
      const claim = { accessModes: ['ReadWriteOnce' as const], resources };
      await plane.create(PERSISTENT_VOLUME_CLAIMS, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata,
        spec: claim,
      });
      await plane.put(`virtualmachines/${VM.name}/addvolume`, {
        name,
        disk: { serial: name.toUpperCase(), disk: { bus } },
        volumeSource: { persistentVolumeClaim: { claimName: name, hotpluggable: true } },
      });
    }
    const plugged = placesOf(await untilSeen('disks came', (places) => 'HOT-SCSI' in places && 'HOT-VIRTIO' in places));
    assert.deepEqual([plugged['A'], plugged['C']], [first['A'], first['C']]);
    assert.deepEqual(placesOf(await restart()), plugged);
    // What was told to the controllers is what the guest sees.
    const { status } = await plane.client.get(VIRTUAL_MACHINE_IDENTITIES, VM);
    const { bus = '' } = status?.devices?.find(({ id }) => id === 'disk-hot-virtio')?.address ?? {};
    assert.equal(`0000:${bus.slice(2)}:00.0`, plugged['HOT-VIRTIO']);
  });

  await t.test('when a NIC comes, goes and comes back', async () => {
    const disks = placesOf(await probe());
    const nic = (state: 'up' | 'absent') => ({ name: 'default', masquerade: {}, state });
    await edit((template) => {
      Object.assign(template.domain.devices!, { autoattachPodInterface: undefined, interfaces: [nic('up')] });
      template.networks = [{ name: 'default', pod: {} }];
    });
    const came = await untilSeen('a NIC came', (places) => Object.keys(places).length === 5);
    const { mac = '', pci = '' } = came.nics[0] ?? {};
    assert.deepEqual(placesOf(came), { ...disks, [mac]: pci });

    await edit(({ domain }) => (domain.devices!.interfaces = [nic('absent')]));
    await untilSeen('the NIC went', (places) => !(mac in places));
    const { status } = await plane.client.get(VIRTUAL_MACHINE_IDENTITIES, VM);
    assert.equal(status?.devices?.find(({ id }) => id === 'nic-default')?.plugged, false);
    assert.deepEqual(placesOf(await restart()), disks);

    await edit(({ domain }) => (domain.devices!.interfaces = [nic('up')]));
    const back = await untilSeen('the NIC came back', (places) => mac in places);
    assert.deepEqual(placesOf(back), { ...disks, [mac]: pci });
    assert.deepEqual(placesOf(await restart()), { ...disks, [mac]: pci });
  });

  await t.test('when a disk is unplugged while it runs, and the agent is killed', async () => {
    const { 'HOT-VIRTIO': _gone, ...rest } = placesOf(await probe());
    await plane.put(`virtualmachines/${VM.name}/removevolume`, { name: 'hot-virtio' });
    await untilSeen('the disk went', (places) => !('HOT-VIRTIO' in places));
    await plane.until(
      VIRTUAL_MACHINE_IDENTITIES,
      VM.name,
      (record) => record?.status?.devices?.every(({ id }) => id !== 'disk-hot-virtio') === true,
    );
    const { deviceHash } = (await plane.client.get(VIRTUAL_MACHINE_IDENTITIES, VM)).status ?? {};
    for (const { pid } of plane.processes().filter(({ command }) => command.endsWith('/node'))) {
      process.kill(pid, 'SIGKILL');
    }
    await plane.server.kill('SIGKILL');
    await plane.restart();
    assert.deepEqual(placesOf(await probe()), rest);
    const learned = await plane.client.get(VIRTUAL_MACHINE_IDENTITIES, VM);
    assert.equal(learned.status?.deviceHash, deviceHash, 'the next agent reads the same');
    assert.deepEqual(placesOf(await restart()), rest);
  });
});

/**
 * Stable device addresses as real guests see them: they list their own PCI devices before and after everything that could
 * move one. One guest per chipset.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { GUEST_IMAGE } from '#api/names.ts';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { lastReport, type GuestReport } from '#cli/tour/guest-report.ts';
import { assertHistory } from '#test/support/identity-history.ts';
import { sendHttp1Request } from '#test/support/raw-https.ts';
import { startRealPlane, type RealGuest, type RealPlane } from '#test/support/real-guests.ts';

const cleanUps: (() => unknown)[] = [];
let plane: RealPlane;

before(async () => {
  plane = await startRealPlane(
    { after: (fn) => void cleanUps.unshift(fn) },
    { nodes: 1, flags: ['--guest-subnets', 'none'] },
  );
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
    firmware: { kernelBoot: { kernelArgs: 'console=ttyS0 quiet no_timer_check', container: { image: GUEST_IMAGE } } },
    devices: { disks: ['a', 'b', 'c'].map(disk), autoattachPodInterface: false, rng: {} },
  },
  volumes: ['a', 'b', 'c'].map(scratch),
};

/** Returns the PCI addresses of disks, by serial, and NICs, by MAC. */
function placesOf({ disks, nics }: GuestReport): Record<string, string> {
  return Object.fromEntries([
    ...disks.map(({ serial, pci }) => [serial, pci] as const),
    ...nics.map(({ mac, pci }) => [mac, pci] as const),
  ]);
}

let probes = 0;

/** A VM with run strategy Always. */
class StableVm {
  readonly at: { readonly namespace: string; readonly name: string };
  readonly guest: RealGuest;

  constructor(name: string) {
    this.at = { namespace: 'default', name };
    this.guest = plane.guest(name);
  }

  async create(template: VmiSpec): Promise<GuestReport> {
    const manifest = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata: { ...this.at } };
    await plane.create(VIRTUAL_MACHINES, {
      ...manifest,
      spec: { runStrategy: 'Always', template: { spec: template } },
    });
    return this.guest.awaitBoot();
  }

  /** Returns what the guest sees now, without a boot. */
  async probe(): Promise<GuestReport> {
    const tag = `now-${++probes}`;
    const text = await this.guest.runCommand(`probe ${tag}`, new RegExp(`GUEST END ${tag}`));
    return lastReport(text, tag)!;
  }

  async waitUntilSeen(what: string, holds: (report: GuestReport) => boolean): Promise<GuestReport> {
    for (let tries = 0; tries < 100; tries++) {
      const report = await this.probe();
      if (holds(report)) return report;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    assert.fail(`the guest never saw that ${what}: ${JSON.stringify(await this.probe())}`);
  }

  /** Changes the template and writes the VM; repeats after a conflict. */
  async edit(change: (template: VmiSpec) => void): Promise<void> {
    for (;;) {
      const vm: Stored<VirtualMachine> = await plane.client.get(VIRTUAL_MACHINES, this.at);
      change(vm.spec.template.spec!);
      const answer = await plane.client.update(VIRTUAL_MACHINES, vm).catch((error: unknown) => error);
      if (!(answer instanceof Error)) return;
      if (!answer.message.includes('the object has been modified')) throw answer;
    }
  }

  async restart(): Promise<GuestReport> {
    const { bootid = '' } = (await this.guest.awaitBoot()).facts;
    const { uid } = (await this.guest.vmi()).metadata;
    await plane.put(`virtualmachines/${this.at.name}/restart`);
    await this.guest.awaitVmi('is another instance', (vmi) => vmi !== undefined && vmi.metadata.uid !== uid);
    return this.guest.awaitBoot({ afterBootId: bootid });
  }

  async record() {
    return (await plane.client.get(VIRTUAL_MACHINE_IDENTITIES, this.at)).status ?? {};
  }
}

/** Plugs in a disk on a new claim and keeps it in the VM. */
async function addVolume({ at }: StableVm, name: string, bus: 'scsi' | 'virtio'): Promise<void> {
  await plane.create(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace: at.namespace, name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '16Mi' } } },
  });
  await plane.put(`virtualmachines/${at.name}/addvolume`, {
    name,
    disk: { serial: name.toUpperCase(), disk: { bus } },
    volumeSource: { persistentVolumeClaim: { claimName: name, hotpluggable: true } },
  });
}

/** Deletes the record: impersonates the only two accounts that the policies allow to do so. */
async function loseRecord({ at }: StableVm): Promise<void> {
  const path = `/apis/identity.selfsame.io/v1/namespaces/${at.namespace}/virtualmachineidentities/${at.name}`;
  const call = async (method: string, account: string, body?: object) => {
    const headers = {
      'content-type': 'application/merge-patch+json',
      'impersonate-user': `system:serviceaccount:${account}`,
      'impersonate-group': 'system:masters',
    };
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await sendHttp1Request(plane.server.access(), { method, path, headers, ...text });
    assert.equal(answer.status, 200, answer.text);
  };
  await call('DELETE', 'kube-system:generic-garbage-collector');
  await call('PATCH', 'selfsame-system:vm-controller', { metadata: { finalizers: null } });
}

test('the devices of a guest keep their addresses', async (t) => {
  const vm = new StableVm('stable');
  const first = placesOf(await vm.create(spec));
  assert.deepEqual(Object.keys(first).sort(), ['A', 'B', 'C']);

  await t.test('when a disk is removed and the version of the machine type changes', async () => {
    await vm.edit((template) => {
      template.domain.devices!.disks = [disk('c'), disk('a')];
      template.domain.machine = { type: 'pc-q35-7.2' };
      template.volumes = ['c', 'a'].map(scratch);
    });
    const report = await vm.restart();
    assert.equal(report.facts['machine'], 'pc-q35-7.2');
    assert.deepEqual(placesOf(report), { A: first['A'], C: first['C'] });
  });

  await t.test('when disks are plugged in, and at the next start', async () => {
    await addVolume(vm, 'hot-scsi', 'scsi');
    await addVolume(vm, 'hot-virtio', 'virtio');
    const isPlugged = (places: Record<string, string>) => 'HOT-SCSI' in places && 'HOT-VIRTIO' in places;
    const plugged = placesOf(
      await vm.waitUntilSeen('the disks were plugged in', (report) => isPlugged(placesOf(report))),
    );
    assert.deepEqual([plugged['A'], plugged['C']], [first['A'], first['C']]);
    assert.deepEqual(placesOf(await vm.restart()), plugged);
    // The record has the addresses that the guest sees.
    const { devices } = await vm.record();
    const { bus = '' } = devices?.find(({ id }) => id === 'disk-hot-virtio')?.address ?? {};
    assert.equal(`0000:${bus.slice(2)}:00.0`, plugged['HOT-VIRTIO']);
  });

  await t.test('when a NIC is plugged in, unplugged and plugged in again', async () => {
    const disks = placesOf(await vm.probe());
    const nic = (state: 'up' | 'absent') => ({ name: 'default', masquerade: {}, state });
    await vm.edit((template) => {
      Object.assign(template.domain.devices!, { autoattachPodInterface: undefined, interfaces: [nic('up')] });
      template.networks = [{ name: 'default', pod: {} }];
    });
    const withNic = await vm.waitUntilSeen('a NIC was plugged in', ({ nics }) => nics.length === 1);
    const { mac = '', pci = '' } = withNic.nics[0] ?? {};
    assert.deepEqual(placesOf(withNic), { ...disks, [mac]: pci });

    await vm.edit(({ domain }) => (domain.devices!.interfaces = [nic('absent')]));
    await vm.waitUntilSeen('the NIC was unplugged', ({ nics }) => nics.length === 0);
    const { devices } = await vm.record();
    assert.equal(devices?.find(({ id }) => id === 'nic-default')?.plugged, false);
    assert.deepEqual(placesOf(await vm.restart()), disks);

    await vm.edit(({ domain }) => (domain.devices!.interfaces = [nic('up')]));
    const back = await vm.waitUntilSeen('the NIC was plugged in again', ({ nics }) => nics.length === 1);
    assert.deepEqual(placesOf(back), { ...disks, [mac]: pci });
    assert.deepEqual(placesOf(await vm.restart()), { ...disks, [mac]: pci });
  });

  await t.test('when a disk is unplugged while the guest runs, and the agent is killed', async () => {
    const { 'HOT-VIRTIO': _gone, ...rest } = placesOf(await vm.probe());
    await plane.put(`virtualmachines/${vm.at.name}/removevolume`, { name: 'hot-virtio' });
    await vm.waitUntilSeen('the disk was unplugged', (report) => !('HOT-VIRTIO' in placesOf(report)));
    await plane.awaitObject(
      VIRTUAL_MACHINE_IDENTITIES,
      vm.at.name,
      (record) => record?.status?.devices?.every(({ id }) => id !== 'disk-hot-virtio') === true,
    );
    const { deviceHash } = await vm.record();
    for (const { pid } of plane.processes().filter(({ command }) => command.endsWith('/node'))) {
      process.kill(pid, 'SIGKILL');
    }
    await plane.server.kill('SIGKILL');
    await plane.restart();
    assert.deepEqual(placesOf(await vm.probe()), rest);
    const learned = await vm.record();
    assert.equal(learned.deviceHash, deviceHash, 'the next agent reads the same devices');
    await loseRecord(vm);
    const { status = {} } = (await plane.awaitObject(
      VIRTUAL_MACHINE_IDENTITIES,
      vm.at.name,
      (record) => record?.status?.deviceHash === deviceHash,
    ))!;
    assert.match(status.history?.at(-1)?.cause ?? '', /^rebuilt from the running guest/);
    const byId = (a: LearnedDevice, b: LearnedDevice) => (a.id < b.id ? -1 : 1);
    assert.deepEqual(status.devices?.toSorted(byId), learned.devices?.toSorted(byId), 'a lost record is rebuilt');
    const cards = await cardsOf(vm);
    assert.deepEqual(placesOf(await vm.restart()), rest);
    assert.deepEqual(await cardsOf(vm), cards, 'the guest has the same root ports');
    // The history accounts for every change of the record.
    assertHistory(
      await plane.client.get(VIRTUAL_MACHINES, vm.at),
      await plane.client.get(VIRTUAL_MACHINE_IDENTITIES, vm.at),
    );
  });
});

/** Returns all PCI devices by address; the guest needs no drivers for that. */
async function cardsOf({ guest }: StableVm): Promise<Record<string, string>> {
  const text = await guest.runCommand(`probe cards-${++probes}`, new RegExp(`GUEST END cards-${probes}`));
  const found = [...text.matchAll(/^GUEST pci (\S+) 0x(\S+):0x(\S+)/gm)];
  return Object.fromEntries(found.map(([, at = '', vendor, device]) => [at, `${vendor}:${device}`]));
}

test('the devices of an i440fx guest keep their addresses, with IDE, CD-ROM and floppy drives', async () => {
  const kubevirt = (await plane.client.list(KUBEVIRTS)).items[0]!;
  const configuration = { ...kubevirt.spec?.configuration, emulatedMachines: ['pc-q35*', 'pc-i440fx*'] };
  await plane.client.update(KUBEVIRTS, { ...kubevirt, spec: { ...kubevirt.spec, configuration } });
  const vm = new StableVm('elder');
  const drives = async () => {
    const { devices = [] } = await vm.record();
    const found = devices.filter(({ address }) => address?.['type'] === 'drive');
    return Object.fromEntries(found.map(({ id, address }) => [id, address]));
  };
  const hd = { name: 'hd', disk: { bus: 'ide' as const } };
  const cd = { name: 'cd', cdrom: {} };
  const fd = { name: 'fd', floppy: {} };
  await vm.create({
    domain: {
      ...spec.domain,
      machine: { type: 'pc-i440fx-7.2' },
      devices: { disks: [hd, cd, fd, disk('a')], interfaces: [{ name: 'slow', model: 'e1000', masquerade: {} }] },
    },
    networks: [{ name: 'slow', pod: {} }],
    volumes: ['hd', 'cd', 'fd', 'a'].map(scratch),
  });
  const [E1000, VIRTIO_DISK] = ['8086:100e', '1af4:1001'];
  const { '0000:00:04.0': diskA, ...cards } = await cardsOf(vm);
  assert.deepEqual([cards['0000:00:03.0'], diskA], [E1000, VIRTIO_DISK]);
  const firstDrives = await drives();
  assert.deepEqual(Object.keys(firstDrives).sort(), ['disk-cd', 'disk-fd', 'disk-hd']);

  await addVolume(vm, 'late', 'virtio');
  const { LATE: late = '' } = placesOf(
    await vm.waitUntilSeen('a disk was plugged in', ({ disks }) => disks.some(({ serial }) => serial === 'LATE')),
  );
  assert.deepEqual(await cardsOf(vm), { ...cards, '0000:00:04.0': VIRTIO_DISK, [late]: VIRTIO_DISK });

  await vm.edit((template) => {
    const { domain, volumes = [] } = template;
    domain.devices!.disks = [fd, cd, ...domain.devices!.disks!.filter(({ name }) => name === 'late'), hd];
    template.volumes = volumes.filter(({ name }) => name !== 'a');
  });
  await vm.restart();
  assert.deepEqual(await cardsOf(vm), { ...cards, [late]: VIRTIO_DISK });
  assert.deepEqual(await drives(), firstDrives);
});

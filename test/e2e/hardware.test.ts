/**
 * Many devices in one real guest (examples/vm-hardware.yaml): the guest lists its PCI devices, and finds each of them at
 * the same address after a restart with one more device, and on another node.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { CONFIG_MAPS, SECRETS, type ConfigMap } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { migrate } from '#test/support/real-migrations.ts';
import { parseDocuments, startRealPlane, type RealGuest, type RealPlane } from '#test/support/real-guests.ts';

const EXAMPLE = new URL('../../examples/vm-hardware.yaml', import.meta.url);
const at = { namespace: 'default', name: 'hardware' };
const PASSWORD = 'correct horse\n';
const EVENTS: ResourceType<KubeObject & { message?: string; reason?: string }> = {
  ...{ group: '', version: 'v1', kind: 'Event', plural: 'events', namespaced: true },
};
const cleanUps: (() => unknown)[] = [];
let plane: RealPlane;
let guest: RealGuest;

before(async () => {
  plane = await startRealPlane({ after: (fn) => void cleanUps.unshift(fn) }, { nodes: 2 });
  guest = plane.guest(at.name);
});

after(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

let probes = 0;

/** Returns vendor and device by address, as the guest sees them. */
async function readPciDevices(): Promise<Record<string, string>> {
  const tag = `cards-${++probes}`;
  const text = await guest.runCommand(`probe ${tag}`, new RegExp(`GUEST END ${tag}`));
  const report = text.slice(text.lastIndexOf(`GUEST BEGIN ${tag}`));
  const found = [...report.matchAll(/^GUEST pci (\S+) 0x(\S+):0x(\S+)/gm)];
  return Object.fromEntries(found.map(([, address = '', vendor, device]) => [address, `${vendor}:${device}`]));
}

async function edit(change: (template: VmiSpec) => void): Promise<void> {
  for (;;) {
    const vm = await plane.client.get(VIRTUAL_MACHINES, at);
    change(vm.spec.template.spec!);
    const answer = await plane.client.update(VIRTUAL_MACHINES, vm).catch((error: unknown) => error);
    if (!(answer instanceof Error)) return;
    if (!answer.message.includes('the object has been modified')) throw answer;
  }
}

/** Waits for an Event whose message matches; returns the message. */
async function waitForEvent(message: RegExp): Promise<string> {
  for (let tries = 0; tries < 300; tries++) {
    const { items } = await plane.client.list(EVENTS, { namespace: at.namespace });
    const found = items.find((event) => message.test(event.message ?? ''));
    if (found?.message !== undefined) return found.message;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return assert.fail(`no Event matches ${message}`);
}

/** Devices on the root bus; hotpluggable devices are behind ports. */
const WANT: Readonly<Record<string, string>> = {
  '0000:00:01.0': '1234:1111', // VGA
  '0000:00:06.0': '1af4:1004', // SCSI
  '0000:00:08.0': '1af4:1002', // balloon
  '0000:00:09.0': '1af4:1005', // entropy
  '0000:00:0a.0': '1b36:000d', // USB
  '0000:00:0b.0': '8086:25ab', // watchdog
  '0000:00:0c.0': '10ec:8139', // rtl8139
  '0000:00:0d.0': '1022:2000', // pcnet
  '0000:00:0e.0': '1af4:1052', // tablet on virtio
  '0000:00:1b.0': '8086:293e', // sound
  '0000:02:00.0': '8086:10d3', // e1000e
};

let first: Record<string, string>;

test('a guest finds all devices of its spec, each at its address', async () => {
  const [settings, vm] = parseDocuments(readFileSync(EXAMPLE, 'utf8')) as [ConfigMap, VirtualMachine];
  const inDefault = <T extends KubeObject>(object: T): T => ({
    ...object,
    metadata: { ...object.metadata, namespace: at.namespace },
  });
  const kubevirt = (await plane.client.list(KUBEVIRTS)).items[0]!;
  const configuration = { ...kubevirt.spec?.configuration, smbios: { manufacturer: 'Example', product: 'Lab, 1' } };
  await plane.client.update(KUBEVIRTS, { ...kubevirt, spec: { ...kubevirt.spec, configuration } });
  await plane.create(CONFIG_MAPS, inDefault(settings));
  const data = { password: Buffer.from(PASSWORD).toString('base64') };
  await plane.create(SECRETS, { apiVersion: 'v1', kind: 'Secret', metadata: { ...at, name: 'keys' }, data });
  const spec = vm.spec.template.spec!;
  spec.domain.devices!.disks!.push({ name: 'keys', disk: { bus: 'scsi' } }, { name: 'self', cdrom: { bus: 'sata' } });
  const fields = [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }];
  spec.volumes!.push({ name: 'keys', secret: { secretName: 'keys' } }, { name: 'self', downwardAPI: { fields } });
  await plane.create(VIRTUAL_MACHINES, inDefault(vm));
  assert.equal((await guest.awaitBoot()).facts['product'], 'Lab, 1');
  first = await readPciDevices();
  for (const [address, card] of Object.entries(WANT)) assert.equal(first[address], card, address);
});

test('the guest reads a ConfigMap, a Secret and its own name from disks', async () => {
  const text = await guest.runCommand('files', /GUEST files end/);
  const found = Object.fromEntries(
    [...text.matchAll(/^GUEST file \S+ (\S+) ([0-9a-f]{64})/gm)].map(([, name = '', sum]) => [name, sum]),
  );
  const sha256 = (content: string) => createHash('sha256').update(content).digest('hex');
  assert.deepEqual(found, { colour: sha256('blue'), password: sha256(PASSWORD), name: sha256(at.name) });
});

test('features that need KVM are left out, with an Event', async () => {
  assert.match(await waitForEvent(/Left out because this node has no KVM/), /hv-relaxed, hv-vapic, hv-spinlocks/);
});

test('its display accepts RFB clients', async () => {
  const { uid } = (await guest.vmi()).metadata;
  const nodes = join(plane.dataDir, 'nodes');
  const run = readdirSync(nodes)
    .map((node) => join(nodes, node, 'domains', uid, 'run'))
    .find((path) => entriesOf(path).includes('vnc.sock'));
  assert.ok(run !== undefined, `there is a display below ${nodes}`);
  const socket = connect(join(run, 'vnc.sock'));
  const [bytes] = (await once(socket, 'data')) as [Buffer];
  assert.match(bytes.toString('latin1'), /^RFB 003\./);
  socket.destroy();
});

test('the link of its interface can be set down and up while the guest runs', async () => {
  const dhcp = async (state: 'up' | 'down') => {
    await edit(({ domain }) => (domain.devices!.interfaces![0]!.state = state));
    await waitForEvent(new RegExp(`The link of nic-default is ${state}\\.`));
    const text = await guest.runCommand('dhcp', /GUEST dhcp \S+/);
    return text.slice(text.lastIndexOf('GUEST dhcp '));
  };
  assert.match(await dhcp('down'), /dhcp none/);
  assert.match(await dhcp('up'), /dhcp 10\./);
});

test('a restart with one more device moves no device', async () => {
  const { bootid = '' } = (await guest.awaitBoot()).facts;
  const { uid } = (await guest.vmi()).metadata;
  await edit(({ domain, volumes }) => {
    domain.devices!.disks!.unshift({ name: 'more', serial: 'MORE-1', disk: { bus: 'virtio' } });
    volumes!.push({ name: 'more', emptyDisk: { capacity: '16Mi' } });
  });
  await plane.put(`virtualmachines/${at.name}/restart`);
  await guest.awaitVmi('is another instance', (vmi) => vmi !== undefined && vmi.metadata.uid !== uid);
  await guest.awaitBoot({ afterBootId: bootid });
  const now = await readPciDevices();
  const more = Object.entries(now).filter(([address]) => first[address] === undefined);
  assert.deepEqual(
    more.map(([, card]) => card),
    ['1af4:1042'],
    'one more virtio disk',
  );
  assert.deepEqual({ ...now, ...first }, now, 'every other device has its address');
  first = now;
});

test('the guest has the same devices on another node', async () => {
  await migrate(plane, at.name);
  assert.deepEqual(await readPciDevices(), first);
  const { status } = await plane.client.get(VIRTUAL_MACHINE_IDENTITIES, at);
  const ids = new Set((status?.devices ?? []).map(({ id }) => id));
  for (const id of ['display0', 'audio0', 'wdt0', 'xhci0', 'input-tablet', 'redir-3']) assert.ok(ids.has(id), id);
});

test('an expired watchdog resets the guest, with an Event', async () => {
  const { uid } = (await guest.vmi()).metadata;
  await guest.runCommand('watchdog 2', /GUEST watchdog runs/);
  await waitForEvent(/did not reset its watchdog in time and is restarted/);
  // The console log of this node has no boot yet: the guest was migrated to it.
  await guest.awaitBoot();
  assert.equal((await guest.vmi()).metadata.uid, uid, 'the instance is the same');
  assert.deepEqual(await readPciDevices(), first);
});

function entriesOf(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

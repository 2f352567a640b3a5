/** A VM of the host API as a real guest sees it: list reports the real addresses, also after the VM is created again. */
import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { HostDevice, HostVerb, HostVm, HostVmStats } from '#api/host-api.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { pciAddressFromMap, formatPciAddress } from '#api/devices/pci-address.ts';
import { DeviceReadings } from '#node/guests/device-readings.ts';
import { DomainLocks } from '#node/guests/domain-locks.ts';
import { AgentReader } from '#node/guest-agent/agent-reader.ts';
import { openHostApi } from '#node/host-api/host-api.ts';
import type { HostApi } from '#node/endpoint/endpoint-agent.ts';
import { openQemu } from '#node/hypervisor/qemu/testing/qemu-scene.ts';
import { lastReport, type GuestReport } from '#cli/tour/guest-report.ts';
import { formatAddress } from '#api/devices/device-address.ts';
import { readLibvirt } from '#formats/libvirt/read-libvirt.ts';
import * as mixes from '#test/libvirt/mixes.ts';
import { openLibvirt, libvirtSkipReason } from '#test/support/libvirt.ts';

const VM_ID = '27c61cea-f4fd-47e9-84e8-d1598f32ccc0';
const GUEST = join(import.meta.dirname, '../../.cache/guest');
const TIMEOUT_MS = 180_000;
const MIB = 1024 * 1024;

const dir = mkdtempSync(join(tmpdir(), 'selfsame-host-api-'));
const hypervisor = openQemu(dir);
let api: HostApi;
let agents: AgentReader;

before(async () => {
  await hypervisor.adopt();
  const readings = new DeviceReadings({ hypervisor, clock: systemClock });
  agents = new AgentReader({ hypervisor, clock: systemClock, log: silentLog });
  const capabilities = await hypervisor.capabilities();
  const parts = {
    hypervisor,
    readings,
    agents,
    turns: new DomainLocks(),
    capabilities,
    clock: systemClock,
    log: silentLog,
  };
  api = await openHostApi({ dir, ...parts });
  const images = join(dir, 'host-images');
  for (const file of ['vmlinuz', 'initrd.gz']) copyFileSync(join(GUEST, file), join(images, file));
  for (const file of ['a', 'b', 'c']) writeFileSync(join(images, file), Buffer.alloc(MIB));
});

after(async () => {
  await agents.stop();
  await hypervisor.destroy(VM_ID);
  await hypervisor.close();
  rmSync(dir, { recursive: true });
});

async function call(verb: HostVerb, parameters: Readonly<Record<string, unknown>>): Promise<HostVm> {
  const { status, vmList = [] } = await api.call(verb, parameters, { signal: new AbortController().signal });
  assert.deepEqual(status, { code: 0, message: 'Done' });
  return vmList[0] as HostVm;
}

/** Returns the report of the guest, at its boot or after the console command `ask`. */
async function report(tag: string, ask?: string): Promise<GuestReport> {
  if (ask !== undefined) {
    const console = await hypervisor.openConsole(VM_ID);
    console.write(`${ask}\n`);
    console.resume();
  }
  const end = systemClock.elapsed() + TIMEOUT_MS;
  for (;;) {
    const text = (await hypervisor.readConsoleLog(VM_ID)).toString();
    const found = lastReport(text, tag);
    if (found !== undefined) return found;
    assert.ok(systemClock.elapsed() < end, `the guest has not reported "${tag}": ${text.slice(-500)}`);
    await delay(200);
  }
}

const where = ({ address }: HostDevice): string => {
  const pci = address === undefined || address === '' ? undefined : pciAddressFromMap(address);
  return pci === undefined ? '' : formatPciAddress(pci);
};

/** Addresses by serial or MAC, as list reports them and as the guest sees them. */
const listedPlaces = ({ devices }: HostVm) =>
  Object.fromEntries(
    devices.flatMap((device) => {
      const name = device['serial'] ?? device['macAddr'];
      return typeof name === 'string' ? [[name, where(device)]] : [];
    }),
  );
const seenPlaces = ({ disks, nics }: GuestReport) =>
  Object.fromEntries([
    ...disks.filter(({ serial }) => serial !== '').map(({ serial, pci }) => [serial, pci]),
    ...nics.map(({ mac, pci }) => [mac, pci]),
  ]);

/** Waits until the statistics of a VM fulfil the condition. */
async function waitForStats(holds: (stats: HostVmStats) => boolean): Promise<void> {
  const end = systemClock.elapsed() + TIMEOUT_MS;
  for (;;) {
    const { statsList = [] } = await api.call('getAllVmStats', {}, { signal: new AbortController().signal });
    if (statsList.some(holds)) return;
    assert.ok(systemClock.elapsed() < end, JSON.stringify(statsList));
    await delay(200);
  }
}

/** Returns the command line of the guest's process, and its niceness. */
function processOf({ pid }: HostVm) {
  const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  const threads = readdirSync(`/proc/${pid}/task`).map((thread) => getPriority(Number(thread)));
  return { words, niceness: [...new Set(threads)] };
}

const KERNEL = { kernel: 'vmlinuz', initrd: 'initrd.gz', kernelArgs: 'console=ttyS0 quiet no_timer_check' };
/** Old hosts gave every VM a controller for the channel of the agent. */
const AGENT_CONTROLLER = mixes.controller('virtio-serial', "index='0' ports='16'");

/** Returns the PCI addresses that libvirt assigns to this hardware on i440fx, without those of the chipset. */
async function placesOfLibvirt(
  t: TestContext,
  devices: readonly string[],
  { hasAgent }: { readonly hasAgent: boolean },
): Promise<string[]> {
  const domain = mixes.domainOf({ chipset: 'i440fx', devices: [...devices, AGENT_CONTROLLER, mixes.balloon('none')] });
  const [defined = ''] = await openLibvirt(t).define([domain]);
  return readLibvirt(defined)
    .rows.filter(({ device, address }) => address?.['type'] === 'pci' && (hasAgent || device !== 'virtio-serial'))
    .map((row) => formatAddress(row))
    .filter(isOfDevice)
    .toSorted();
}

/** Slots 0 and 1 belong to the chipset. */
const isOfDevice = (address: string) => !/^0000:00:0[01]\./.test(address);

test(
  'a VM of the old format has the device addresses that libvirt assigned',
  { skip: libvirtSkipReason() },
  async (t) => {
    const network = { macAddr: '02:00:00:00:00:0a,02:00:00:00:00:0b', nicModel: 'pv,e1000' };
    const drives = [
      { if: 'virtio', path: 'a', serial: 'S-a' },
      { if: 'virtio', path: 'b', serial: 'S-b' },
    ];
    const old = { drives, ...network, soundDevice: 'ich6', display: 'qxl', spiceMonitors: '2' };
    const created = await call('create', { vmId: VM_ID, memSize: 160, ...KERNEL, ...old });
    const hardware = [
      ...[mixes.vd(0), mixes.vd(1), mixes.cdrom('hdc', 'ide'), mixes.nic(1), mixes.nic(2, 'e1000')],
      ...[mixes.video('qxl'), mixes.video('qxl'), mixes.sound('ich6')],
    ];
    assert.deepEqual(
      created.devices.map(where).filter(isOfDevice).filter(Boolean).toSorted(),
      await placesOfLibvirt(t, hardware, { hasAgent: false }),
    );
    assert.deepEqual(listedPlaces(created), {
      '02:00:00:00:00:0a': '0000:00:03.0',
      '02:00:00:00:00:0b': '0000:00:04.0',
      'S-a': '0000:00:07.0',
      'S-b': '0000:00:08.0',
    });
    await call('destroy', { vmId: VM_ID });
  },
);

test('list reports the addresses that the guest sees, after plug, unplug and a new create', async (t) => {
  const propagateErrors = 'off';
  const disk = (name: string) => ({
    ...{ type: 'disk', device: 'disk', iface: 'virtio', path: name, serial: `S-${name}`, propagateErrors },
  });
  const nic = { type: 'interface', device: 'bridge', nicModel: 'pv', macAddr: '02:00:00:00:00:0a' };
  const devices = [
    { type: 'video', device: 'cirrus' },
    disk('a'),
    disk('b'),
    nic,
    { type: 'sound', device: 'ich6' },
    { type: 'console', device: 'console' },
    { type: 'channel', device: 'unix' },
  ];
  const tuned = { timeOffset: '-86400', nice: '3' };
  const created = await call('create', { vmId: VM_ID, memSize: 160, display: 'vnc', ...KERNEL, ...tuned, devices });
  const booted = await report('boot');
  assert.equal(booted.facts['uuid'], VM_ID);
  assert.deepEqual(seenPlaces(booted), listedPlaces(created));
  await t.test('the addresses are those that libvirt assigns', { skip: libvirtSkipReason() }, async (inner) => {
    const hardware = [mixes.video('cirrus'), mixes.vd(0), mixes.vd(1), mixes.nic(1), mixes.sound('ich6')];
    assert.deepEqual(
      booted.pci.filter(isOfDevice).toSorted(),
      await placesOfLibvirt(inner, hardware, { hasAgent: true }),
    );
  });

  const { words, niceness } = processOf(created);
  assert.deepEqual(niceness, [3], 'the niceness of every thread');
  const [, base = ''] = /^base=(.*)$/.exec(words[words.indexOf('-rtc') + 1] ?? '') ?? [];
  assert.ok(Math.abs(Date.parse(`${base}Z`) - systemClock.now() + 86_400_000) < TIMEOUT_MS, base);
  assert.equal(
    words.filter((word) => word.includes('werror') && word.includes('stop')).length,
    2,
    'both disks stop the guest at errors',
  );
  await report('lease', 'dhcp\nprobe lease');
  await waitForStats(({ guestIPs, monitorResponse }) => guestIPs === '10.0.2.15' && monitorResponse === '0');

  const plugged = await call('hotplugDisk', { vmId: VM_ID, drive: disk('c') });
  assert.deepEqual(seenPlaces(await report('plugged', 'probe plugged')), listedPlaces(plugged));
  const unplugged = await call('hotunplugDisk', { vmId: VM_ID, drive: { path: 'a' } });
  assert.deepEqual(seenPlaces(await report('unplugged', 'probe unplugged')), listedPlaces(unplugged));
  assert.deepEqual(Object.keys(listedPlaces(unplugged)).sort(), ['02:00:00:00:00:0a', 'S-b', 'S-c']);

  await call('destroy', { vmId: VM_ID });
  const again = await call('create', unplugged);
  assert.equal(again.hash, unplugged.hash);
  assert.deepEqual(seenPlaces(await report('boot')), listedPlaces(unplugged));
});

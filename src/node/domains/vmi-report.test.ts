import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { timestamp } from '#lib/clock.ts';
import type { NodeFacts } from '#node/guests/node-facts.ts';
import { isReported, reportedStatus, type GuestFacts } from '#node/domains/vmi-report.ts';
import type { HotplugState } from '#node/domains/hotplug/hotplug-devices.ts';
import type { DomainInfo, DomainInspection, DomainState, FailedDisk } from '#node/hypervisor/hypervisor.ts';
import type { Capabilities } from '#node/hardware/capabilities.ts';
import type { InterfaceBackend } from '#node/hardware/domain-definition.ts';
import { guestUserOf } from '#node/hardware/guest-user.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';

const NOW = 1_900_000_000_000;

const aNode = (accelerator: Capabilities['accelerator'] = 'kvm'): NodeFacts => ({
  name: 'n1',
  hostIp: '127.0.0.1',
  capabilities: { machines: [], accelerator, version: 'QEMU 7.2' },
  sandboxed: true,
});
const aDomain = (current: DomainState = { state: 'running' }): DomainInfo => ({
  id: 'u',
  name: 'ns/db',
  machine: 'pc-q35-7.2',
  startedAtMs: NOW,
  current,
  deviceEvents: 0,
});

function aVmi(status: VirtualMachineInstance['status'] = {}, domain: VirtualMachineInstance['spec']['domain'] = {}) {
  const vmi: VirtualMachineInstance = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'db' },
    spec: { domain },
    status,
  };
  return vmi;
}

const connected: InterfaceBackend = {
  type: 'pod',
  tap: 'tap0',
  attachment: { podInterface: 'eth0', network: { type: 'default' }, binding: 'masquerade' },
};

/** A guest whose interfaces have these backends. */
function inspectionOf(...backends: readonly InterfaceBackend[]): DomainInspection {
  const definition = aDefinition();
  const [nic] = definition.devices.flatMap((device) => (device.type === 'interface' ? device : []));
  const others = definition.devices.filter(({ type }) => type !== 'interface');
  const interfaces = backends.map((backend, i) => ({ ...nic!, name: i === 0 ? 'default' : `nic${i}`, backend }));
  return { definition: { ...definition, devices: [...others, ...interfaces] }, unplugging: [] };
}

const facts: GuestFacts = {
  domain: aDomain(),
  inspection: inspectionOf(connected),
  reading: { devices: [], hash: 'h1', revision: 7 },
  hotplug: [],
  node: aNode(),
  nowMs: NOW,
};
const conditionTypes = (status: VirtualMachineInstance['status']) => status?.conditions?.map(({ type }) => type);

test('the fields of the controller are kept', () => {
  const others = { phase: 'Running', nodeName: 'n1', reason: 'x', activePods: { p: 'n1' } } as const;
  const conditions = [{ type: 'Ready', status: 'True' as const, lastTransitionTime: timestamp(0) }];
  const status = reportedStatus(aVmi({ ...others, conditions }), facts);
  assert.deepEqual({ ...status, conditions: status.conditions?.slice(0, 1) }, { ...status, ...others, conditions });
});

test('the properties of the guest are reported', () => {
  const spec = { cpu: { cores: 2 }, memory: { guest: '1Gi' }, resources: { requests: { memory: '2Gi' } } };
  const { machine, memory, currentCPUTopology, guestStarted, runtimeUser } = reportedStatus(aVmi({}, spec), facts);
  assert.deepEqual(machine, { type: 'pc-q35-7.2' });
  assert.deepEqual(memory, { guestAtBoot: '1Gi', guestCurrent: '1Gi', guestRequested: '1Gi' });
  assert.deepEqual(currentCPUTopology, { sockets: 1, cores: 2, threads: 1 });
  assert.deepEqual(guestStarted, { at: timestamp(NOW) });
  assert.equal(runtimeUser, guestUserOf('u').uid);
});

test('the interfaces are those of the guest now', () => {
  const reported = { interfaces: [{ name: 'default', mac: '02:00:00:00:00:0b' }] };
  const want = [{ name: 'default', mac: '02:00:00:00:00:01', infoSource: 'domain' }];
  assert.deepEqual(reportedStatus(aVmi(reported), facts).interfaces, want);
  assert.deepEqual(reportedStatus(aVmi(reported), { ...facts, inspection: undefined }).interfaces, reported.interfaces);
});

const devicesOf = ({ deviceHash, deviceRevision }: NonNullable<VirtualMachineInstance['status']>) =>
  [deviceHash, deviceRevision] as const;

test('the device hash is reported after a reading, and kept until the guest is started again', () => {
  const unread = { ...facts, reading: undefined };
  assert.deepEqual(devicesOf(reportedStatus(aVmi(), unread)), [undefined, undefined]);
  const read = reportedStatus(aVmi(), facts);
  assert.deepEqual(devicesOf(read), ['h1', 7]);
  assert.deepEqual(devicesOf(reportedStatus(aVmi(read), unread)), ['h1', 7]);
  const startedAnew = { ...unread, domain: { ...aDomain(), startedAtMs: NOW + 5000 } };
  assert.deepEqual(devicesOf(reportedStatus(aVmi(read), startedAnew)), [undefined, 7]);
});

const plugging: HotplugState = { device: 'disk-data', phase: 'Plugging' };
const unbound: HotplugState = { ...plugging, reason: 'VolumeNotBound', message: 'it is not bound' };
const failed: HotplugState = { device: 'nic-b', phase: 'Failed', reason: 'PlugFailed', message: 'no port is free' };
const leaving: HotplugState = { device: 'nic-a', phase: 'Unplugging', reason: 'WaitingForGuest', message: 'asked' };

const pending: Record<string, { hotplug: GuestFacts['hotplug']; want: [string, string] | undefined }> = {
  'is absent without a change': { hotplug: [], want: undefined },
  'is absent while a change proceeds': { hotplug: [plugging], want: undefined },
  'names the volume that a change waits for': {
    hotplug: [unbound],
    want: ['VolumeNotBound', 'disk-data: it is not bound'],
  },
  'is present while a change waits for the guest': { hotplug: [leaving], want: ['WaitingForGuest', 'nic-a: asked'] },
  'has the reason of a failed change': {
    hotplug: [leaving, failed],
    want: ['PlugFailed', 'nic-a: asked; nic-b: no port is free'],
  },
};
for (const [sentence, { hotplug, want }] of Object.entries(pending)) {
  test(`DeviceChangePending ${sentence}`, () => {
    const before = reportedStatus(aVmi(), { ...facts, hotplug: [leaving] });
    for (const vmi of [aVmi(), aVmi(before)]) {
      const found = reportedStatus(vmi, { ...facts, hotplug }).conditions?.find(
        ({ type }) => type === 'DeviceChangePending',
      );
      assert.deepEqual(found && [found.reason, found.message], want);
    }
  });
}

test('the timestamp of a hotplug phase is kept while the phase does not change', () => {
  const first = reportedStatus(aVmi(), { ...facts, hotplug: [plugging] });
  assert.deepEqual(first.hotplug, [{ device: 'disk-data', phase: 'Plugging', since: timestamp(NOW) }]);
  const later = { ...facts, nowMs: NOW + 60_000 };
  const second = reportedStatus(aVmi(first), { ...later, hotplug: [unbound] });
  assert.equal(second.hotplug?.[0]?.since, timestamp(NOW));
  const ready = reportedStatus(aVmi(second), { ...later, hotplug: [{ device: 'disk-data', phase: 'Ready' }] });
  assert.deepEqual(ready.hotplug, [{ device: 'disk-data', phase: 'Ready', since: timestamp(NOW + 60_000) }]);
  assert.deepEqual(reportedStatus(aVmi(ready), { ...later, hotplug: undefined }).hotplug, ready.hotplug);
  assert.equal(reportedStatus(aVmi(ready), later).hotplug, undefined);
});

test('Paused is set while the guest is paused', () => {
  const paused = reportedStatus(aVmi(), { ...facts, domain: aDomain({ state: 'paused' }) });
  assert.deepEqual(conditionTypes(paused), ['Paused']);
  assert.deepEqual(conditionTypes(reportedStatus(aVmi(paused), facts)), []);
  const crashed = aDomain({ state: 'ended', how: 'crashed' });
  assert.deepEqual(conditionTypes(reportedStatus(aVmi(paused), { ...facts, domain: crashed })), []);
});

test('software emulation and simulated guests are reported', () => {
  const emulated = reportedStatus(aVmi(), { ...facts, node: aNode('tcg') });
  assert.deepEqual(conditionTypes(emulated), ['SoftwareEmulation']);
  const simulated = reportedStatus(aVmi(), { ...facts, node: aNode('simulated') });
  assert.deepEqual([conditionTypes(simulated), simulated.guestStarted?.simulated], [[], true]);
});

const userMode: Record<string, { facts: Partial<GuestFacts>; want: [string, RegExp] | undefined }> = {
  'is absent on the network of guests': { facts: {}, want: undefined },
  'names the interface of a guest without root': {
    facts: { inspection: inspectionOf({ type: 'user' }), node: { ...aNode(), sandboxed: false } },
    want: ['RootRequired', /^User-mode networking for default: .* does not run as root/],
  },
  'announces the next start of a guest that was started without a network': {
    facts: { inspection: inspectionOf({ type: 'user' }) },
    want: ['StartedWithoutNetwork', /the next start uses it\.$/],
  },
  'names a second pod network': {
    facts: { inspection: inspectionOf(connected, { type: 'user' }), network: { namespace: '/run/n', interfaces: [] } },
    want: ['SecondPodNetwork', /^User-mode networking for nic1: /],
  },
  'is absent for simulated guests': {
    facts: { inspection: inspectionOf({ type: 'user' }), node: aNode('simulated') },
    want: undefined,
  },
};
for (const [sentence, { facts: given, want }] of Object.entries(userMode)) {
  test(`UserModeNetwork ${sentence}`, () => {
    const before = reportedStatus(aVmi(), { ...facts, inspection: inspectionOf({ type: 'user' }) });
    for (const vmi of [aVmi(), aVmi(before)]) {
      const { conditions } = reportedStatus(vmi, { ...facts, ...given });
      const found = conditions?.find(({ type }) => type === 'UserModeNetwork');
      assert.equal(found?.reason, want?.[0]);
      assert.match(found?.message ?? '', want?.[1] ?? /^$/);
    }
  });
}

test('UserModeNetwork is kept while the guest is not known', () => {
  const before = reportedStatus(aVmi(), { ...facts, inspection: inspectionOf({ type: 'user' }) });
  const unknown = reportedStatus(aVmi(before), { ...facts, inspection: undefined });
  assert.deepEqual(conditionTypes(unknown), ['UserModeNetwork']);
});

test('an unchanged report does not depend on the time', () => {
  const given = { ...facts, hotplug: [leaving], node: aNode('tcg') };
  const status = reportedStatus(aVmi(), { ...given, nowMs: NOW + 7000 });
  assert.equal(isReported(aVmi(status), given), true);
  assert.equal(isReported(aVmi({ ...status, machine: { type: 'other' } }), given), false);
  assert.equal(isReported(aVmi(status), { ...given, hotplug: [] }), false);
  assert.equal(isReported(aVmi(status), { ...given, reading: { devices: [], hash: 'h2', revision: 8 } }), false);
});

test('a guest with a disk error is not reported as paused by the user', () => {
  const domain = aDomain({ state: 'paused', why: 'ioError' });
  const paused = reportedStatus(aVmi(), { ...facts, domain }).conditions?.find(({ type }) => type === 'Paused');
  assert.deepEqual([paused?.status, paused?.reason], ['True', 'PausedIOError']);
  assert.match(paused?.message ?? '', /could not read or write a disk of the guest, .* run "virtctl unpause vmi db"$/);
});

const ERROR = 'VMI was paused, low-level IO error detected:';
const rootClaim = 'volume "root" (PersistentVolumeClaim "db-root")';
const errors: Record<string, { failedDisks: FailedDisk[]; owner?: boolean; want: string }> = {
  'a full disk': {
    failedDisks: [{ deviceId: 'disk-root', cause: 'noSpace' }],
    want: `${rootClaim}: no space left on the storage of n1; free space there, then run "virtctl unpause vmi db"`,
  },
  'a full disk of a VM': {
    failedDisks: [{ deviceId: 'disk-root', cause: 'noSpace' }],
    owner: true,
    want: `${rootClaim}: no space left on the storage of n1; free space there, then run "virtctl unpause vm database"`,
  },
  'disks with different errors': {
    failedDisks: [
      { deviceId: 'disk-root', cause: 'noSpace' },
      { deviceId: 'disk-scratch', cause: 'failed' },
    ],
    want: `${rootClaim}: no space left on the storage of n1, volume "scratch": n1 could not read or write it; repair the storage, then run "virtctl unpause vmi db"`,
  },
};
for (const [name, { failedDisks, owner = false, want }] of Object.entries(errors)) {
  test(`the report of a paused guest names the disk and the cause: ${name}`, () => {
    const plain = aVmi();
    const volumes = [{ name: 'root', persistentVolumeClaim: { claimName: 'db-root' } }];
    const controller = {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      name: 'database',
      uid: 'u',
      controller: true,
    };
    const metadata = { ...plain.metadata, ...(owner && { ownerReferences: [controller] }) };
    const domain = aDomain({ state: 'paused', why: 'ioError', failedDisks });
    const { conditions } = reportedStatus(
      { ...plain, metadata, spec: { ...plain.spec, volumes } },
      { ...facts, domain },
    );
    assert.equal(conditions?.find(({ type }) => type === 'Paused')?.message, `${ERROR} ${want}`);
  });
}

/**
 * Checks that every parameter of vdsm's `create`, and every key of its devices, is implemented, or is refused or noted
 * by name. The names come from vdsm's schema (3.6), its code (3.1 to 4.1) and the requests of the engine of that time.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { aVm, startHostScene, VM_ID, type HostScene } from '#node/host-api/testing/host-scene.ts';

type Outcome =
  /** The property of the definition that the key sets. */
  | { readonly has: (definition: DomainDefinition) => unknown; readonly value: unknown }
  | { readonly note: RegExp }
  | { readonly refused: RegExp }
  /** The value asks for nothing, or for what the host does anyway. */
  | 'no effect, no note';

interface Case {
  readonly sent: (scene: HostScene) => Record<string, unknown>;
  readonly outcome: Outcome;
}

const top = (key: string, value: unknown, outcome: Outcome): [string, Case] => [
  `${key}: ${JSON.stringify(value)}`,
  { sent: () => ({ devices: [], [key]: value }), outcome },
];
const flat = (key: string, value: unknown, outcome: Outcome, more = {}): [string, Case] => [
  `${key}: ${JSON.stringify(value)} in the old format`,
  { sent: () => ({ [key]: value, ...more }), outcome },
];
const disk = (key: string, value: unknown, outcome: Outcome): [string, Case] => [
  `disk with ${key}: ${JSON.stringify(value)}`,
  {
    sent: (scene) => ({ devices: [{ type: 'disk', device: 'disk', path: scene.image('a.img'), [key]: value }] }),
    outcome,
  },
];
const deviceCase = (entry: Record<string, unknown>, outcome: Outcome): [string, Case] => [
  JSON.stringify(entry),
  { sent: () => ({ devices: [entry] }), outcome },
];
const nic = (more: Record<string, unknown>, outcome: Outcome) =>
  deviceCase({ type: 'interface', device: 'bridge', ...more }, outcome);
const withParams = (type: string, device: string, specParams: Record<string, unknown>, outcome: Outcome) =>
  deviceCase({ type, device, specParams }, outcome);

const unused = (field: string): Outcome => ({ note: new RegExp(`^${field.replaceAll('[', '\\[')} has no effect: `) });
const refused = (field: string): Outcome => ({ refused: new RegExp(`: ${field.replaceAll('[', '\\[')}: `) });
const has = (pick: (definition: DomainDefinition) => unknown, value: unknown): Outcome => ({ has: pick, value });
const firstDisk = ({ devices }: DomainDefinition) => devices.find((device) => device.type === 'disk');
const firstNic = ({ devices }: DomainDefinition) => devices.find((device) => device.type === 'interface');

const cases = Object.fromEntries<Case>([
  // Implemented.
  top(
    'vmName',
    'db',
    has(({ name }) => name, '/db'),
  ),
  top(
    'emulatedMachine',
    'q35',
    has(({ machine }) => machine, 'pc-q35-rhel9.2.0'),
  ),
  top(
    'cpuType',
    'Nehalem',
    has(({ cpu }) => cpu.model, 'Nehalem'),
  ),
  top(
    'smp',
    '2',
    has(({ cpu }) => cpu.sockets, 2),
  ),
  top(
    'acpiEnable',
    'false',
    has(({ acpi }) => acpi, false),
  ),
  top(
    'uuid',
    '5d307ca9-b3ef-428c-8861-06e72d69f223',
    has(({ firmware }) => firmware.uuid.slice(0, 8), '5d307ca9'),
  ),
  top(
    'serial',
    'S-1',
    has(({ firmware }) => firmware.serial, 'S-1'),
  ),
  top(
    'timeOffset',
    '3600',
    has(({ clock }) => clock, { offsetSeconds: 3600 }),
  ),
  top(
    'timeOffset',
    -3600,
    has(({ clock }) => clock, { offsetSeconds: -3600 }),
  ),
  top(
    'timeOffset',
    '0',
    has(({ clock }) => clock, undefined),
  ),
  top('timeOffset', 'soon', refused('timeOffset')),
  top(
    'tdf',
    'true',
    has(({ clock }) => clock, { rtcTickPolicy: 'catchup' }),
  ),
  top(
    'pitReinjection',
    'false',
    has(({ clock }) => clock, { pitTickPolicy: 'delay' }),
  ),
  top(
    'nice',
    '5',
    has(({ nice }) => nice, 5),
  ),
  top(
    'nice',
    '0',
    has(({ nice }) => nice, undefined),
  ),
  top('nice', -5, refused('nice')),
  top('nice', 20, refused('nice')),
  disk(
    'propagateErrors',
    'off',
    has((definition) => firstDisk(definition)?.errorPolicy, 'stop'),
  ),
  disk(
    'propagateErrors',
    'on',
    has((definition) => firstDisk(definition)?.errorPolicy, 'report'),
  ),
  disk(
    'propagateErrors',
    '',
    has((definition) => firstDisk(definition)?.errorPolicy, undefined),
  ),
  disk('propagateErrors', 'maybe', refused('devices[0].propagateErrors')),
  disk(
    'serial',
    'S-2',
    has((definition) => firstDisk(definition)?.serial, 'S-2'),
  ),
  disk(
    'readonly',
    'true',
    has((definition) => firstDisk(definition)?.readonly, true),
  ),
  disk(
    'bootOrder',
    '1',
    has((definition) => firstDisk(definition)?.bootOrder, 1),
  ),
  nic(
    { linkActive: 'false' },
    has((definition) => firstNic(definition)?.link, 'down'),
  ),
  nic(
    { linkActive: true },
    has((definition) => firstNic(definition)?.link, undefined),
  ),
  nic(
    { nicModel: 'e1000' },
    has((definition) => firstNic(definition)?.model, 'e1000'),
  ),
  nic(
    { network: 'br1' },
    has((definition) => firstNic(definition)?.backend, { type: 'bridge', bridge: 'br1' }),
  ),
  top('custom', {}, 'no effect, no note'),
  top('vmType', 'kvm', 'no effect, no note'),
  top('launchPaused', 'false', 'no effect, no note'),

  // Refused.
  top('vmType', 'xen', refused('vmType')),
  top('launchPaused', 'true', refused('launchPaused')),
  top('hiberVolHandle', 'a,b,c', refused('hiberVolHandle')),
  top('restoreState', '/x', refused('restoreState')),
  top('restoreFromSnapshot', true, refused('restoreFromSnapshot')),
  top('recover', true, refused('recover')),
  top('migrationDest', 'libvirt', refused('migrationDest')),
  top('_migrationParams', { a: 1 }, refused('_migrationParams')),
  top('_srcDomXML', '<domain/>', refused('_srcDomXML')),
  top('sysprepInf', 'x', refused('sysprepInf')),
  top('xml', '<domain/>', refused('xml')),
  nic({ device: 'sriov' }, refused('devices[0].device')),
  nic({ device: 'hostdev' }, refused('devices[0].device')),
  nic({ device: 'vnlink' }, refused('devices[0].device')),
  nic({ device: 'bridgeless' }, refused('devices[0].device')),
  nic({ portMirroring: ['blue'] }, refused('devices[0].portMirroring')),
  nic({ portMirroring: [] }, 'no effect, no note'),
  nic({ specParams: { promisc: 'blue,red:mirror' } }, refused('devices[0].specParams.promisc')),
  nic({ specParams: { promisc: '' } }, 'no effect, no note'),
  disk('diskType', 'network', refused('devices[0].diskType')),
  disk('diskType', 'file', 'no effect, no note'),
  disk('hosts', [{ name: 'a' }], refused('devices[0].hosts')),
  disk('protocol', 'rbd', refused('devices[0].protocol')),
  disk('auth', { user: 'a' }, refused('devices[0].auth')),
  disk('specParams', { vmPayload: { file: { a: 'b' } } }, refused('devices[0].specParams.vmPayload')),
  disk('specParams', { path: 'a.img' }, refused('devices[0].specParams.path')),
  withParams('tpm', 'tpm', { mode: 'passthrough' }, refused('devices[0].specParams.mode')),
  withParams('tpm', 'tpm', { path: '/dev/tpm0' }, refused('devices[0].specParams.path')),

  // Noted: keys of the VM.
  ...[
    ...['displayNetwork', 'displayIp', 'spiceSecureChannels', 'spiceSslCipherSuite', 'keyboardLayout', 'clientIp'],
    ...['username', 'displayPort', 'displaySecurePort', 'transparentHugePages', 'cpuShares', 'cpuPinning'],
    ...['numaTune', 'numOfIoThreads', 'memGuaranteedSize', 'maxMemSize', 'maxMemSlots', 'maxVCpus', 'guestNumaNodes'],
    ...['exitCode', 'exitMessage', 'exitReason', 'pauseCode', 'guestIPs', 'guestFQDN', 'monitorResponse'],
    ...['afterMigrationStatus', 'elapsedTimeOffset', 'statusTime', 'elapsedTime', 'statsAge', 'session'],
  ].map((key) => top(key, '7', unused(key))),
  ...[
    ...['copyPasteEnable', 'fileTransferEnable', 'smartcardEnable', 'hypervEnable', 'bootMenuEnable', 'tabletEnable'],
    ...['volatileFloppy', 'enableGuestEvents', 'liveMerge'],
  ].flatMap((key) => [top(key, 'true', unused(key)), top(key, 'false', 'no effect, no note')]),
  top('kvmEnable', 'true', { note: /^kvmEnable has no effect: all guests of this host run with simulated$/ }),
  top('kvmEnable', 'false', 'no effect, no note'),
  top('displayNetwork', '', 'no effect, no note'),
  top('custom', { sap_agent: 'true' }, unused('custom.sap_agent')),
  top('kernelArgs', 'quiet', unused('kernelArgs')),
  [
    'initrd without a kernel',
    { sent: (scene) => ({ devices: [], initrd: scene.image('initrd.gz') }), outcome: unused('initrd') },
  ],
  top('timeOfset', '5', { note: /^timeOfset has no effect: this host does not know it; did you mean timeOffset\?$/ }),
  ...['drives', 'hda', 'cdrom', 'floppy', 'macAddr', 'nicModel', 'bridge', 'soundDevice', 'spiceMonitors'].map((key) =>
    top(key, '2', unused(key)),
  ),
  flat('spiceMonitors', '2', unused('spiceMonitors')),
  flat('custom', { device_a: '{"type":"rng","device":"virtio"}' }, unused('custom.device_a')),

  // Noted: keys of devices.
  ...[
    ...['apparentsize', 'truesize', 'reqsize', 'volumeChain', 'volumeInfo', 'baseVolumeID', 'bus', 'sgio', 'discard'],
    ...['wipeAfterDelete'],
  ].map((key) => disk(key, '7', unused(`devices[0].${key}`))),
  disk('specParams', { ioTune: { total_iops_sec: 1 } }, unused('devices[0].specParams.ioTune')),
  disk('specParams', { pinToIoThread: '1' }, unused('devices[0].specParams.pinToIoThread')),
  nic({ filter: 'vdsm-no-mac-spoofing' }, unused('devices[0].filter')),
  nic({ filterParameters: ['a'] }, unused('devices[0].filterParameters')),
  nic({ custom: { a: 'b' } }, unused('devices[0].custom')),
  nic({ specParams: { inbound: { average: 1 } } }, unused('devices[0].specParams.inbound')),
  nic({ specParams: { outbound: { average: 1 } } }, unused('devices[0].specParams.outbound')),
  nic({ readonly: 'true' }, unused('devices[0].readonly')),
  withParams('video', 'cirrus', { vram: '65536' }, unused('devices[0].specParams.vram')),
  withParams('video', 'cirrus', { heads: '4' }, unused('devices[0].specParams.heads')),
  withParams('controller', 'virtio-scsi', { ioThreadId: '1' }, unused('devices[0].specParams.ioThreadId')),
  deviceCase({ type: 'controller', device: 'virtio-scsi', index: 1 }, unused('devices[0].index')),
  deviceCase(
    { type: 'controller', device: 'usb', model: 'qemu-xhci', master: { startport: 0 } },
    unused('devices[0].master'),
  ),
  withParams('watchdog', 'watchdog', { model: 'i6300esb', action: 'poweroff' }, unused('devices[0].specParams.action')),
  withParams('watchdog', 'watchdog', { model: 'i6300esb', action: 'reset' }, 'no effect, no note'),
  withParams('rng', 'virtio', { source: 'hwrng' }, unused('devices[0].specParams.source')),
  withParams('rng', 'virtio', { bytes: '1' }, unused('devices[0].specParams.bytes')),
  withParams('rng', 'virtio', { period: '1' }, unused('devices[0].specParams.period')),
  withParams('tpm', 'tpm', { model: 'tpm-tis' }, unused('devices[0].specParams.model')),
  withParams('console', 'console', { consoleType: 'virtio' }, unused('devices[0].specParams.consoleType')),
  withParams('console', 'console', { enableSocket: 'true' }, unused('devices[0].specParams.enableSocket')),
  deviceCase({ type: 'rng', device: 'virtio', bootOrder: 3 }, unused('devices[0].bootOrder')),
  deviceCase(
    { type: 'graphics', device: 'spice' },
    { note: /^devices\[0\] is left out: there is no VNC or SPICE server$/ },
  ),
  ...['smartcard', 'hostdev', 'memory', 'redir', 'mdev'].map((type) =>
    deviceCase({ type, device: 'x' }, { note: new RegExp(`"dev-${type}0" \\(${type}/x[^)]*\\) is left out: `) }),
  ),
]);

for (const [name, { sent, outcome }] of Object.entries(cases)) {
  test(`create handles ${name}`, async (t) => {
    const scene = await startHostScene(t);
    const { status, notes = [] } = await scene.call('create', { ...aVm, ...sent(scene) });
    if (typeof outcome === 'object' && 'refused' in outcome) {
      assert.equal(status.code, 9, notes.join('\n'));
      assert.match(status.message, outcome.refused);
      return;
    }
    assert.equal(status.code, 0, status.message);
    const others = notes.filter((note) => !/^display has|needs it$/.test(note));
    if (typeof outcome === 'object' && 'note' in outcome) {
      assert.equal(others.length, 1, others.join('\n'));
      assert.match(others[0] ?? '', outcome.note);
      return;
    }
    assert.deepEqual(others, []);
    if (outcome === 'no effect, no note') return;
    const definition = scene.hypervisor().inspect(VM_ID)?.definition;
    assert.ok(definition);
    assert.deepEqual(outcome.has(definition), outcome.value);
  });
}

test('notes unused keys of drives in the old format', async (t) => {
  const scene = await startHostScene(t);
  const drives = [{ if: 'virtio', bus: '0', boot: 'true', propagateErrors: 'off', path: scene.image('a.img') }];
  const { status, notes } = await scene.call('create', { ...aVm, drives });
  assert.equal(status.code, 0, status.message);
  assert.deepEqual(notes, ['drives[0].bus has no effect: the index identifies a disk']);
  const { devices } = scene.hypervisor().inspect(VM_ID)!.definition;
  const disk = devices.find(({ id }) => id === 'disk-virtio0');
  assert.equal(disk?.type === 'disk' && disk.errorPolicy, 'stop');
});

test('applies the same rules to hotplugged devices', async (t) => {
  const scene = await startHostScene(t);
  await scene.call('create', { ...aVm, devices: [] });
  const nicOf = (more: object) => ({ vmId: VM_ID, nic: { ...more } });
  const plugged = await scene.call('hotplugNic', nicOf({ filter: 'x', specParams: { inbound: { average: 1 } } }));
  assert.deepEqual(plugged.notes, [
    'nic.filter has no effect: traffic is not filtered',
    'nic.specParams.inbound has no effect: this host does not limit single devices',
  ]);
  assert.match(await scene.status('hotplugNic', nicOf({ device: 'sriov' })), /^49 .*: nic\.device: "sriov"; expected/);
  assert.match(await scene.status('hotplugNic', nicOf({ portMirroring: ['a'] })), /^49 .*: nic\.portMirroring: /);
  const drive = { path: scene.image('b.img'), propagateErrors: 'off' };
  assert.equal((await scene.call('hotplugDisk', { vmId: VM_ID, drive })).notes, undefined);
  const definition = scene.hypervisor().inspect(VM_ID)?.definition;
  assert.equal(definition && firstDisk(definition)?.errorPolicy, 'stop');
});

test('notes parameters that a verb does not have', async (t) => {
  const scene = await startHostScene(t);
  await scene.call('create', { ...aVm, devices: [] });
  const note = (key: string) => [`${key} has no effect: this host does not know it`];
  const notesOf = async (verb: Parameters<HostScene['call']>[0], sent: object) =>
    (await scene.call(verb, { ...sent })).notes;
  assert.deepEqual(await notesOf('list', { fullStatus: true, vmList: [], onlyUUID: false }), undefined);
  assert.deepEqual(await notesOf('list', { statsOnly: true }), note('statsOnly'));
  assert.deepEqual(await notesOf('getAllVmStats', { options: {} }), note('options'));
  assert.deepEqual(await notesOf('destroy', { vmId: VM_ID, gracefulAttempts: 1 }), note('gracefulAttempts'));
});

test('accepts the output of list without a note about it', async (t) => {
  const scene = await startHostScene(t);
  const devices = [
    { type: 'disk', device: 'disk', path: scene.image('a.img') },
    { type: 'interface', device: 'bridge' },
    { type: 'channel', device: 'unix' },
  ];
  await scene.call('create', { ...aVm, serial: 'S', timeOffset: '60', nice: '1', devices });
  const before = await scene.vm();
  await scene.call('destroy', { vmId: VM_ID });
  const { status, notes } = await scene.call('create', before);
  assert.equal(status.code, 0, status.message);
  assert.deepEqual(notes, ['display has no effect: there is no VNC or SPICE server']);
});

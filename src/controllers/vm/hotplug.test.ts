import assert from 'node:assert/strict';
import { test } from 'node:test';
import { derivedMac } from '#api/derived-mac.ts';
import type { Disk } from '#api/domain/disk.ts';
import type { Interface } from '#api/domain/interface.ts';
import type { Volume } from '#api/domain/volume.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import { EPHEMERAL_HOTPLUG_ANNOTATION } from '#api/names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { concludeVm, decideVm } from '#controllers/vm/decide-vm.ts';
import { hotplug } from '#controllers/vm/hotplug.ts';
import { restartRequired } from '#controllers/vm/restart-required.ts';
import { aRecord, aVm, aVmi, aWorld, DELETED, UUID } from '#controllers/vm/vm-world.fixture.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { applyJsonPatch } from '#kube/json-patch.ts';
import type { Stored } from '#kube/meta.ts';

interface Part {
  readonly disk?: Disk;
  readonly volume?: Volume;
  readonly nic?: Interface;
}

/** A disk on a claim, which can come and go unless it is said otherwise. */
function data(name: string, disk: Partial<Disk> = {}, claim: Partial<Volume['persistentVolumeClaim']> = {}): Part {
  return {
    disk: { name, disk: { bus: 'scsi' }, ...disk },
    volume: { name, persistentVolumeClaim: { claimName: `${name}-claim`, hotpluggable: true, ...claim } },
  };
}
const fixed = (name: string): Part => data(name, {}, { hotpluggable: undefined });
const nic = (name: string, more: Partial<Interface> = {}): Part => ({ nic: { name, bridge: {}, ...more } });
const absent = (name: string): Part => nic(name, { state: 'absent' });

/** As people write it: lists that are not there are not there. */
function template(parts: readonly Part[], cores = 1): Partial<VmiSpec> {
  const disks = parts.flatMap((part) => part.disk ?? []);
  const volumes = parts.flatMap((part) => part.volume ?? []);
  const interfaces = parts.flatMap((part) => part.nic ?? []);
  const networks = interfaces.map(({ name }) => ({ name, multus: { networkName: `br-${name}` } }));
  return {
    domain: {
      machine: { type: 'pc-q35-7.2' },
      firmware: { uuid: UUID, serial: 's1' },
      cpu: { cores },
      devices: {
        autoattachPodInterface: false,
        ...(disks.length > 0 ? { disks } : {}),
        ...(interfaces.length > 0 ? { interfaces } : {}),
      },
    },
    ...(volumes.length > 0 ? { volumes } : {}),
    ...(networks.length > 0 ? { networks } : {}),
  };
}

interface Scene {
  /** The instance as it was started. */
  readonly runs: readonly Part[];
  readonly template: readonly Part[];
  /** The note of what was plugged in for this run only. */
  readonly note?: string;
  readonly hotplug?: VmiStatus['hotplug'];
  /** Ids of interfaces on record, with `!` for those that are unplugged. */
  readonly rows?: readonly string[];
  /** Of the devices: as the instance tells it, and as it is on record. */
  readonly hashes?: readonly [string, string];
}

function worldOf(scene: Scene, more: Partial<VmWorld> = {}): VmWorld {
  const { runs, template: now, note, hotplug: listed, rows, hashes } = scene;
  const [before, vm] = [aVm({ template: template(runs) }), aVm({ template: template(now) })];
  const status = { ...(listed && { hotplug: listed }), ...(hashes && { deviceHash: hashes[0] }) };
  const made = aVmi('Running', { vm: before, status });
  const annotations = {
    ...made.metadata.annotations,
    ...(note === undefined ? {} : { [EPHEMERAL_HOTPLUG_ANNOTATION]: note }),
  };
  const vmi = { ...made, metadata: { ...made.metadata, annotations } };
  const devices = rows?.map((id): LearnedDevice => {
    const row = { id: id.replace('!', ''), type: 'interface', device: 'virtio' };
    return id.endsWith('!') ? { ...row, plugged: false } : row;
  });
  const learned = devices && { status: { devices, ...(hashes && { deviceHash: hashes[1] }) } };
  const identity = { ...aRecord(vm), ...learned };
  return aWorld({ vm, vmi, identity, ...more });
}

/** What the instance is after the one write that was decided. */
function after(world: VmWorld): Stored<VirtualMachineInstance> {
  const { vmi } = world;
  assert.ok(vmi !== undefined);
  const { changes = [] } = hotplug(world) ?? {};
  return changes.reduce((object, change) => {
    assert.ok(change.do === 'patch' && change.uid === vmi.metadata.uid && Array.isArray(change.patch.body));
    return applyJsonPatch(object, change.patch.body) as typeof vmi;
  }, vmi);
}

function shown({ metadata, spec }: Stored<VirtualMachineInstance>): string {
  const { disks = [], interfaces = [] } = spec.domain.devices ?? {};
  const contents = new Map(spec.volumes?.map((volume) => [volume.name, volume.persistentVolumeClaim?.claimName]));
  assert.equal(contents.size, disks.length);
  assert.equal(spec.networks?.length ?? 0, interfaces.length);
  const note = metadata.annotations?.[EPHEMERAL_HOTPLUG_ANNOTATION];
  return [
    ...disks.map(({ name }) => `${name}:${contents.get(name)}`),
    ...interfaces.map(({ name, state }) =>
      state === 'absent' ? `(${name})` : `${name}${state === 'down' ? '!' : ''}`,
    ),
    ...(note === undefined ? [] : [note]),
  ].join(' ');
}

interface Case extends Scene {
  readonly want: string;
  readonly events?: string[];
  /** Whether something is left for a restart. */
  readonly restart?: boolean;
}

const root = fixed('root');
const ROOT = 'root:root-claim';
const listed = (device: string, phase: 'Ready' | 'Unplugging') => [{ device, phase }];

const cases: Record<string, Case> = {
  'a disk that the template gets is plugged in, with its volume': {
    runs: [root],
    template: [root, data('a'), data('b', { disk: { bus: 'virtio' } })],
    want: `${ROOT} a:a-claim b:b-claim`,
    events: ['HotplugVolume', 'HotplugVolume'],
  },
  'in the order of the template, after what is there': {
    runs: [root, data('b')],
    template: [root, data('c'), data('b'), data('a')],
    want: `${ROOT} b:b-claim c:c-claim a:a-claim`,
    events: ['HotplugVolume', 'HotplugVolume'],
  },
  'a machine without devices can get one': {
    runs: [],
    template: [data('a')],
    want: 'a:a-claim',
    events: ['HotplugVolume'],
  },
  'one that is not hotpluggable waits for a restart': {
    runs: [root],
    template: [root, fixed('a')],
    want: ROOT,
    restart: true,
  },
  'so does one on another bus': {
    runs: [root],
    template: [root, data('a', { disk: { bus: 'sata' } })],
    want: ROOT,
    restart: true,
  },
  'and a CD-ROM': {
    runs: [root],
    template: [root, data('a', { disk: undefined, cdrom: { bus: 'scsi' } })],
    want: ROOT,
    restart: true,
  },
  'and a floppy': {
    runs: [root],
    template: [root, data('a', { disk: undefined, floppy: {} })],
    want: ROOT,
    restart: true,
  },
  'and one to boot from': { runs: [root], template: [root, data('a', { bootOrder: 1 })], want: ROOT, restart: true },
  'a LUN comes as a disk does': {
    runs: [root],
    template: [root, data('a', { disk: undefined, lun: { bus: 'scsi' } })],
    want: `${ROOT} a:a-claim`,
    events: ['HotplugVolume'],
  },
  'a disk that the template loses is unplugged': {
    runs: [root, data('a'), data('b')],
    template: [root, data('b')],
    want: `${ROOT} b:b-claim`,
    events: ['UnplugVolume'],
  },
  'also the last one': { runs: [data('a')], template: [], want: '', events: ['UnplugVolume'] },
  'one that is not hotpluggable stays until a restart': {
    runs: [root, fixed('a')],
    template: [root],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
  'what was plugged in for this run only stays': {
    runs: [root, data('a')],
    template: [root],
    note: '["a"]',
    want: `${ROOT} a:a-claim ["a"]`,
  },
  'and is the template’s own when that has it, too': {
    runs: [root, data('a'), data('b')],
    template: [root, data('a')],
    note: '["a","b"]',
    want: `${ROOT} a:a-claim b:b-claim ["b"]`,
  },
  'a note that says nothing any more goes': {
    runs: [root, data('a')],
    template: [root, data('a')],
    note: '["a"]',
    want: `${ROOT} a:a-claim`,
  },
  'where the note cannot be read nothing is taken away': {
    runs: [root, data('a')],
    template: [root],
    note: '{"a":',
    want: `${ROOT} a:a-claim {"a":`,
  },
  'a disk that is only attached is not in the guest': {
    runs: [root],
    template: [root, data('a', { plugged: false })],
    want: ROOT,
  },
  'one that is to be only attached is unplugged': {
    runs: [root, data('a')],
    template: [root, data('a', { plugged: false })],
    want: ROOT,
    events: ['UnplugVolume'],
  },
  'one that was only attached leaves the spec to come anew': {
    runs: [root, data('a', { plugged: false })],
    template: [root, data('a')],
    want: ROOT,
    events: ['UnplugVolume'],
  },
  'another claim makes it another disk': {
    runs: [root, data('a')],
    template: [root, data('a', {}, { claimName: 'other' })],
    want: ROOT,
    events: ['UnplugVolume'],
  },
  'another bus waits for a restart: the guest uses the disk': {
    runs: [root, data('a')],
    template: [root, data('a', { disk: { bus: 'virtio' } })],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
  'another serial, too': {
    runs: [root, data('a')],
    template: [root, data('a', { serial: 'x' })],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
  'and another cache': {
    runs: [root, data('a', { cache: 'none' })],
    template: [root, data('a', { cache: 'writeback' })],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
  'and whether the claim is only read': {
    runs: [root, data('a')],
    template: [root, data('a', {}, { readOnly: true })],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
  'unless it is not in the guest anyway': {
    runs: [root, data('a', { plugged: false })],
    template: [root, data('a', { plugged: false, serial: 'x' })],
    want: ROOT,
    events: ['UnplugVolume'],
  },
  'other words for the same do not': {
    runs: [root, data('a', { disk: {} })],
    template: [root, data('a', { disk: { bus: 'virtio', readonly: false }, plugged: true, optional: true })],
    want: `${ROOT} a:a-claim`,
  },
  'nor do they of what stays': {
    runs: [root, data('a', { disk: undefined }, { hotpluggable: undefined }), nic('n')],
    template: [
      root,
      data('a', { disk: { bus: 'virtio', readonly: false }, serial: '' }, { hotpluggable: undefined }),
      nic('n', { model: 'virtio', state: 'up' }),
    ],
    want: `${ROOT} a:a-claim n`,
  },
  'a disk of another claim comes back when the guest has let go of it': {
    runs: [root],
    template: [root, data('a', {}, { claimName: 'other' })],
    want: `${ROOT} a:other`,
    events: ['HotplugVolume'],
  },
  'and not before': {
    runs: [root],
    template: [root, data('a', {}, { claimName: 'other' })],
    hotplug: listed('disk-a', 'Unplugging'),
    want: ROOT,
  },
  'a disk that is no longer hotpluggable stays until a restart': {
    runs: [root, data('a')],
    template: [root, fixed('a')],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
  'a claim that another disk leaves is free after that': {
    runs: [root, data('a')],
    template: [root, data('b', {}, { claimName: 'a-claim' })],
    want: ROOT,
    events: ['UnplugVolume'],
  },
  'a claim that is plugged in by hand under another name stays there for this run': {
    runs: [root, data('a')],
    template: [root, data('b', {}, { claimName: 'a-claim' })],
    note: '["a"]',
    want: `${ROOT} a:a-claim ["a"]`,
    restart: true,
  },
  'a claim that is only read may be there twice': {
    runs: [root, data('a', {}, { readOnly: true })],
    template: [root, data('a', {}, { readOnly: true }), data('b', {}, { claimName: 'a-claim', readOnly: true })],
    want: `${ROOT} a:a-claim b:a-claim`,
    events: ['HotplugVolume'],
  },
  'but not where one writes': {
    runs: [root, data('a', {}, { readOnly: true })],
    template: [root, data('a', {}, { readOnly: true }), data('b', {}, { claimName: 'a-claim' })],
    want: `${ROOT} a:a-claim`,
  },
  'an interface that the template gets is plugged in, with its network': {
    runs: [nic('a', { macAddress: '02:00:00:00:00:01' })],
    template: [nic('a', { macAddress: '02:00:00:00:00:01' }), nic('b', { macAddress: '02:00:00:00:00:02' })],
    want: 'a b',
    events: ['HotplugInterface'],
  },
  'one to boot from waits for a restart': {
    runs: [nic('a')],
    template: [nic('a'), nic('b', { bootOrder: 1 })],
    want: 'a',
    restart: true,
  },
  'an interface that is absent is unplugged when that is on record': {
    runs: [nic('a'), nic('b')],
    template: [nic('a'), absent('b')],
    rows: ['nic-a', 'nic-b!'],
    want: 'a (b)',
    events: ['UnplugInterface'],
  },
  'until then it stays': {
    runs: [nic('a'), nic('b')],
    template: [nic('a'), absent('b')],
    rows: ['nic-a', 'nic-b'],
    want: 'a b',
  },
  'one that the guest has booted from stays until a restart': {
    runs: [nic('a', { bootOrder: 1 })],
    template: [absent('a')],
    rows: ['nic-a!'],
    want: 'a',
    restart: true,
  },
  'an absent one does not wait for a record that has no such interface': {
    runs: [nic('a'), nic('b')],
    template: [nic('a'), absent('b')],
    rows: ['nic-a'],
    want: 'a (b)',
    events: ['UnplugInterface'],
  },
  'unless that has not been read yet: its address would be lost': {
    runs: [nic('a'), nic('b')],
    template: [nic('a'), absent('b')],
    rows: ['nic-a'],
    hashes: ['h2', 'h1'],
    want: 'a b',
  },
  'once it has, there is nothing to wait for': {
    runs: [nic('a'), nic('b')],
    template: [nic('a'), absent('b')],
    rows: ['nic-a'],
    hashes: ['h2', 'h2'],
    want: 'a (b)',
    events: ['UnplugInterface'],
  },
  'it comes back': {
    runs: [nic('a'), absent('b')],
    template: [nic('a'), nic('b', { state: 'up', model: 'virtio' })],
    rows: ['nic-b'],
    want: 'a b',
    events: ['HotplugInterface'],
  },
  'when that is on record, too': {
    runs: [nic('a'), absent('b')],
    template: [nic('a'), nic('b')],
    rows: ['nic-b!'],
    want: 'a (b)',
  },
  'its link goes down and comes up while it runs': {
    runs: [nic('a'), nic('b', { state: 'down' })],
    template: [nic('a', { state: 'down' }), nic('b')],
    want: 'a! b',
    events: ['InterfaceLink', 'InterfaceLink'],
  },
  'that it is up need not be said': { runs: [nic('a')], template: [nic('a', { state: 'up' })], want: 'a' },
  'it comes back without a link': {
    runs: [nic('a'), absent('b')],
    template: [nic('a'), nic('b', { state: 'down' })],
    rows: ['nic-b'],
    want: 'a b!',
    events: ['HotplugInterface'],
  },
  'but as another one only with a restart': {
    runs: [absent('b')],
    template: [nic('b', { model: 'e1000e' })],
    want: '(b)',
    restart: true,
  },
  'an absent one that the instance never had is nothing to do': {
    runs: [nic('a')],
    template: [nic('a'), absent('b')],
    want: 'a',
  },
  'nor is one that the template no longer has': { runs: [nic('a'), absent('b')], template: [nic('a')], want: 'a (b)' },
  'one that the template loses without that stays until a restart': {
    runs: [nic('a'), nic('b')],
    template: [nic('a')],
    want: 'a b',
    restart: true,
  },
  'one that has changed waits for a restart': {
    runs: [nic('a')],
    template: [nic('a', { model: 'e1000e' })],
    want: 'a',
    restart: true,
  },
  'the order of interfaces means nothing': { runs: [nic('a'), nic('b')], template: [nic('b'), nic('a')], want: 'a b' },
  'the order of disks is the order to boot in': {
    runs: [fixed('a'), fixed('b')],
    template: [fixed('b'), fixed('a')],
    want: 'a:a-claim b:b-claim',
    restart: true,
  },
  'unless that is given': {
    runs: [data('a', { bootOrder: 1 }), fixed('b')],
    template: [fixed('b'), data('a', { bootOrder: 1 })],
    want: 'a:a-claim b:b-claim',
  },
  'where a disk that comes and goes stands among the others means nothing': {
    runs: [root, data('a'), fixed('b')],
    template: [root, fixed('b'), data('a')],
    want: `${ROOT} a:a-claim b:b-claim`,
  },
  'unless it is the first': {
    runs: [root, data('a')],
    template: [data('a'), root],
    want: `${ROOT} a:a-claim`,
    restart: true,
  },
};

for (const [name, scene] of Object.entries(cases)) {
  test(name, () => {
    const world = worldOf(scene);
    const { want, events = [], restart = false } = scene;
    const plan = hotplug(world);
    const vmi = after(world);
    assert.equal(shown(vmi), want);
    assert.deepEqual(plan?.events?.map(({ reason }) => reason) ?? [], events);
    assert.equal(plan === undefined, vmi === world.vmi, 'a plan is for something');
    assert.deepEqual([restartRequired(world), restartRequired({ ...world, vmi })], [restart, restart]);
  });
}

test('another disk under the same name comes in a second write', () => {
  const changed = data('a', { serial: 'x' }, { claimName: 'other' });
  const world = worldOf({ runs: [root, data('a')], template: [root, changed] });
  const once = { ...world, vmi: after(world) };
  const twice = { ...once, vmi: after(once) };
  assert.deepEqual([shown(once.vmi), shown(twice.vmi)], [ROOT, `${ROOT} a:other`]);
  assert.equal(hotplug(twice), undefined);
});

test('a write is only made on the lists that were read', () => {
  const { vmi, ...world } = worldOf({
    runs: [root],
    template: [root, data('a'), nic('n', { macAddress: '02:00:00:00:00:01' })],
  });
  const [change] = hotplug({ ...world, vmi })?.changes ?? [];
  assert.ok(vmi !== undefined && change?.do === 'patch');
  const { body } = change.patch;
  const { devices } = vmi.spec.domain;
  const others = {
    volumes: { ...vmi.spec, volumes: [] },
    networks: { ...vmi.spec, networks: [{ name: 'x', pod: {} }] },
    disks: { ...vmi.spec, domain: { ...vmi.spec.domain, devices: { ...devices, disks: [] } } },
    interfaces: { ...vmi.spec, domain: { ...vmi.spec.domain, devices: { ...devices, interfaces: [{ name: 'x' }] } } },
  };
  assert.doesNotThrow(() => applyJsonPatch(vmi, body));
  for (const spec of Object.values(others)) assert.throws(() => applyJsonPatch({ ...vmi, spec }, body), /test/i);
});

test('the MAC address of an interface is on record before the guest sees it', () => {
  const world = worldOf({ runs: [nic('a')], template: [nic('a'), nic('b')] });
  const known = { ...aRecord(aVm({ template: template([nic('a')]) })) };
  const [change, ...others] = hotplug({ ...world, identity: known })?.changes ?? [];
  assert.ok(change?.do === 'patch' && others.length === 0);
  assert.equal(change.type.kind, 'VirtualMachineIdentity');
  const macs = ['a', 'b'].map((name) => ({ name, macAddress: derivedMac('vm-uid', name) }));
  assert.deepEqual(change.patch.body, { metadata: { resourceVersion: '1' }, spec: { interfaces: macs } });
  const { interfaces } = after(world).spec.domain.devices ?? {};
  assert.equal(interfaces?.[1]?.macAddress, derivedMac('vm-uid', 'b'));
});

const asked: Scene = { runs: [root], template: [root, data('a')] };
const moments: Record<string, VmWorld> = {
  'while the VM is held': worldOf(asked, { lock: { kind: 'snapshot', name: 'nightly' } }),
  'of an instance that is being deleted': worldOf(asked, {
    vmi: aVmi('Running', { vm: aVm({ template: template([root]) }), metadata: { ...DELETED, finalizers: [] } }),
  }),
  'before the guest runs': worldOf(asked, { vmi: aVmi('Scheduled', { vm: aVm({ template: template([root]) }) }) }),
  'after its end': worldOf(asked, { vmi: aVmi('Succeeded', { vm: aVm({ template: template([root]) }) }) }),
  'without an instance': worldOf(asked, { vmi: undefined }),
};
for (const [name, world] of Object.entries(moments)) {
  test(`nothing is plugged ${name}, nor is that a reason to restart`, () => {
    assert.equal(hotplug(world), undefined);
    assert.equal(restartRequired(world), false);
  });
}

test('what else has changed still waits for a restart', () => {
  const world = worldOf(asked);
  const vm = aVm({ template: template(asked.template, 2) });
  assert.equal(restartRequired({ ...world, vm }), true);
  assert.equal(shown(after({ ...world, vm })), `${ROOT} a:a-claim`);
});

test('it is one of the rules, and what keeps it from being done is told', () => {
  const world = worldOf(asked);
  const { changes, goOn } = decideVm(world);
  const [change] = changes;
  assert.ok(change !== undefined && goOn === true);
  const status = concludeVm(world, [{ change, error: new Error('no room') }]);
  const conditions = (status?.['conditions'] ?? []) as { type: string; reason?: string; message?: string }[];
  const failure = conditions.find(({ type }) => type === 'Failure');
  assert.deepEqual(
    [failure?.reason, failure?.message],
    ['FailedHotplug', 'Failure while changing the devices of the running VMI: no room'],
  );
});

/** Test fixtures: a VM that runs with some devices while its template already has others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Disk } from '#api/domain/disk.ts';
import type { Interface } from '#api/domain/interface.ts';
import type { VmiVolume } from '#api/domain/volume.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { EPHEMERAL_HOTPLUG_ANNOTATION } from '#api/names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { planHotplug } from '#controllers/vm/hotplug/hotplug.ts';
import { requiresRestart } from '#controllers/vm/hotplug/restart-required.ts';
import { aRecord, aVm, aVmi, aWorld, UUID } from '#controllers/vm/testing/vm-world.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';
import type { Stored } from '#kube/meta.ts';

interface Part {
  readonly disk?: Disk;
  readonly volume?: VmiVolume;
  readonly nic?: Interface;
}

/** Returns a disk on a claim, hotpluggable by default. */
export function claimDisk(
  name: string,
  disk: Partial<Disk> = {},
  claim: Partial<VmiVolume['persistentVolumeClaim']> = {},
): Part {
  return {
    disk: { name, disk: { bus: 'scsi' }, ...disk },
    volume: { name, persistentVolumeClaim: { claimName: `${name}-claim`, hotpluggable: true, ...claim } },
  };
}
export const fixedDisk = (name: string): Part => claimDisk(name, {}, { hotpluggable: undefined });
export const nic = (name: string, more: Partial<Interface> = {}): Part => ({ nic: { name, bridge: {}, ...more } });
export const absent = (name: string): Part => nic(name, { state: 'absent' });

/** Returns the template as users write it: without empty lists. */
export function template(parts: readonly Part[], cores = 1): Partial<VmiSpec> {
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

export interface Scene {
  /** The devices with which the instance was started. */
  readonly runs: readonly Part[];
  readonly template: readonly Part[];
  /** The annotation with the volumes that were plugged in for this run only. */
  readonly annotation?: string;
  readonly hotplug?: VmiStatus['hotplug'];
  /** Ids of recorded interfaces, with `!` for those that are unplugged. */
  readonly rows?: readonly string[];
  /** The device hash that the instance reports, and the one in the record. */
  readonly hashes?: readonly [string, string];
}

export function worldOf(scene: Scene, more: Partial<VmWorld> = {}): VmWorld {
  const { runs, template: now, annotation, hotplug: listed, rows, hashes } = scene;
  const [before, vm] = [aVm({ template: template(runs) }), aVm({ template: template(now) })];
  const status = { ...(listed && { hotplug: listed }), ...(hashes && { deviceHash: hashes[0] }) };
  const built = aVmi('Running', { vm: before, status });
  const annotations = {
    ...built.metadata.annotations,
    ...(annotation === undefined ? {} : { [EPHEMERAL_HOTPLUG_ANNOTATION]: annotation }),
  };
  const vmi = { ...built, metadata: { ...built.metadata, annotations } };
  const devices = rows?.map((id): LearnedDevice => {
    const row = { id: id.replace('!', ''), type: 'interface', device: 'virtio' };
    return id.endsWith('!') ? { ...row, plugged: false } : row;
  });
  const learned = devices && { status: { devices, ...(hashes && { deviceHash: hashes[1] }) } };
  const identity = { ...aRecord(vm), ...learned };
  return aWorld({ vm, vmi, identity, ...more });
}

/** Returns the instance after the decided write. */
export function afterHotplug(world: VmWorld): Stored<VirtualMachineInstance> {
  const { vmi } = world;
  assert.ok(vmi !== undefined);
  const { changes = [] } = planHotplug(world) ?? {};
  return changes.reduce((object, change) => {
    assert.ok(change.do === 'patch' && change.uid === vmi.metadata.uid && Array.isArray(change.patch.body));
    return applyJsonPatch(object, change.patch.body) as typeof vmi;
  }, vmi);
}

export function describeDevices({ metadata, spec }: Stored<VirtualMachineInstance>): string {
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

export interface Case extends Scene {
  readonly want: string;
  readonly events?: string[];
  /** True if some change needs a restart. */
  readonly restart?: boolean;
}

export const root = fixedDisk('root');
export const ROOT = 'root:root-claim';
export const hotplugStatus = (device: string, phase: 'Ready' | 'Unplugging') => [{ device, phase }];

export function testHotplug(cases: Readonly<Record<string, Case>>): void {
  for (const [name, scene] of Object.entries(cases)) {
    test(name, () => {
      const world = worldOf(scene);
      const { want, events = [], restart = false } = scene;
      const plan = planHotplug(world);
      const vmi = afterHotplug(world);
      assert.equal(describeDevices(vmi), want);
      assert.deepEqual(plan?.events?.map(({ reason }) => reason) ?? [], events);
      assert.equal(plan === undefined, vmi === world.vmi, 'a plan changes the instance');
      assert.deepEqual([requiresRestart(world), requiresRestart({ ...world, vmi })], [restart, restart]);
    });
  }
}

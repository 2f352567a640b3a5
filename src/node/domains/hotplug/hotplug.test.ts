import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Disk } from '#api/domain/disk.ts';
import type { Interface } from '#api/domain/interface.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { HotplugPhase } from '#api/virtual-machine-instance/status.ts';
import type { Device, DiskDevice, InterfaceDevice } from '#node/hardware/domain-definition.ts';
import { decideHotplug, hotplugStates } from '#node/domains/hotplug/decide-hotplug.ts';
import { hotplugDevices } from '#node/domains/hotplug/hotplug-devices.ts';
import type { HotplugNote } from '#node/guests/hotplug-notes.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';

const NOW = 1_000_000;

const aDisk = (overrides: Partial<DiskDevice> = {}): DiskDevice => ({
  type: 'disk',
  id: 'disk-data',
  name: 'data',
  media: 'disk',
  bus: 'scsi',
  readonly: false,
  cache: 'none',
  source: { path: '/a', format: 'raw' },
  ...overrides,
});
const aNic = (name: string, overrides: Partial<InterfaceDevice> = {}): InterfaceDevice => ({
  type: 'interface',
  id: `nic-${name}`,
  name,
  model: 'virtio',
  macAddress: '02:00:00:00:00:01',
  backend: { type: 'user' },
  ...overrides,
});

interface Case {
  readonly disks?: readonly Disk[];
  /** Claims by the name of the volume. */
  readonly claims?: Readonly<Record<string, string>>;
  /** Claims of volumes that are not hotpluggable, by the name of the volume. */
  readonly fixed?: Readonly<Record<string, string>>;
  readonly nics?: readonly Interface[];
  readonly guest?: readonly Device[];
  readonly leaving?: readonly string[];
  readonly reported?: Readonly<Record<string, HotplugPhase>>;
  readonly notes?: Readonly<Record<string, HotplugNote>>;
  /** `plug disk-data`, `recheck 500`. */
  readonly actions?: readonly string[];
  /** `disk-data Ready`. */
  readonly states?: readonly string[];
}

const onScsi: readonly Disk[] = [{ name: 'data', disk: { bus: 'scsi' } }];
const claims = { data: 'a' };
const last = (is: 'waiting' | 'failed' | 'unplugging', inMs: number): HotplugNote => ({
  last: { is, reason: 'Because', message: 'm', tries: 1, dueAtMs: NOW + inMs },
});
const onA: HotplugNote = { claim: 'a' };

const groups: Record<string, Record<string, Case>> = {
  'a disk of a hotpluggable claim': {
    'is plugged in if the guest does not have it': {
      ...{ disks: onScsi, claims },
      actions: ['plug disk-data'],
      states: ['disk-data Plugging'],
    },
    'is plugged in on virtio if the spec names no bus': {
      ...{ disks: [{ name: 'data' }], claims },
      actions: ['plug disk-data'],
    },
    'is tried again after the backoff': {
      ...{ disks: onScsi, claims, notes: { 'disk-data': last('waiting', 0) } },
      actions: ['plug disk-data'],
    },
    'is not tried again during the backoff': {
      ...{ disks: onScsi, claims, notes: { 'disk-data': last('waiting', 500) } },
      actions: ['recheck 500'],
      states: ['disk-data Plugging Because: m'],
    },
    'is reported as failed after a permanent failure': {
      ...{ disks: onScsi, claims, notes: { 'disk-data': last('failed', 500) } },
      actions: ['recheck 500'],
      states: ['disk-data Failed PlugFailed: m'],
    },
    'needs no action if it is plugged in on the claim in the spec': {
      ...{ disks: onScsi, claims, guest: [aDisk()], notes: { 'disk-data': onA } },
      actions: [],
      states: ['disk-data Ready'],
    },
    'is verified by an agent that does not know its claim': {
      ...{ disks: onScsi, claims, guest: [aDisk()] },
      actions: ['verify disk-data'],
      states: ['disk-data Ready'],
    },
    'is verified later if its claim is not ready': {
      ...{ disks: onScsi, claims, guest: [aDisk()], notes: { 'disk-data': last('waiting', 500) } },
      actions: ['recheck 500'],
      states: ['disk-data Ready'],
    },
    'is unplugged if it uses another claim': {
      ...{ disks: onScsi, claims, guest: [aDisk()], notes: { 'disk-data': { claim: 'b' } } },
      actions: ['unplug disk-data'],
    },
    'is unplugged if it was removed from the spec': {
      ...{ guest: [aDisk()] },
      actions: ['unplug disk-data'],
      states: [
        'disk-data Unplugging WaitingForGuest: The guest was asked to release the device and has not released it yet.',
      ],
    },
    'is unplugged if the spec has plugged: false': {
      ...{ disks: [{ ...onScsi[0]!, plugged: false }], claims, guest: [aDisk()] },
      actions: ['unplug disk-data'],
    },
    'is unplugged again after the retry interval': {
      ...{ guest: [aDisk()], leaving: ['disk-data'], notes: { 'disk-data': last('unplugging', 0) } },
      actions: ['unplug disk-data'],
    },
    'is not unplugged again during the retry interval': {
      ...{ guest: [aDisk()], leaving: ['disk-data'], notes: { 'disk-data': last('unplugging', 30_000) } },
      actions: ['recheck 30000'],
    },
    'that is wanted again while it is being unplugged is not unplugged again': {
      ...{
        disks: onScsi,
        claims,
        guest: [aDisk()],
        leaving: ['disk-data'],
        notes: { 'disk-data': last('unplugging', 0) },
      },
      actions: [],
      states: ['disk-data Unplugging Because: m'],
    },
    'that is wanted again with another claim is unplugged again': {
      ...{ disks: onScsi, claims, guest: [aDisk()], leaving: ['disk-data'] },
      notes: { 'disk-data': { ...last('unplugging', 0), claim: 'b' } },
      actions: ['unplug disk-data'],
    },
    'is cleared when the guest has released it': {
      ...{ reported: { 'disk-data': 'Unplugging' } },
      actions: ['clear disk-data'],
      states: ['disk-data Unplugging'],
    },
    'is cleared only once': {
      ...{ reported: { 'disk-data': 'Unplugging' }, notes: { 'disk-data': { isCleared: true } } },
      actions: [],
      states: [],
    },
    'is cleared before another one is plugged in': {
      ...{ disks: onScsi, claims, reported: { 'disk-data': 'Ready' } },
      actions: ['clear disk-data'],
      states: ['disk-data Unplugging'],
    },
    'whose claim changed before it was plugged in is cleared first': {
      disks: onScsi,
      claims,
      reported: { 'disk-data': 'Plugging' },
      notes: { 'disk-data': { last: { ...last('waiting', 500).last!, claim: 'b' } } },
      actions: ['clear disk-data'],
    },
    'that is tried again with the same claim is not cleared': {
      disks: onScsi,
      claims,
      reported: { 'disk-data': 'Plugging' },
      notes: { 'disk-data': { last: { ...last('waiting', 500).last!, claim: 'a' } } },
      actions: ['recheck 500'],
    },
    'is plugged in after the previous one was cleared': {
      ...{ disks: onScsi, claims, reported: { 'disk-data': 'Ready' }, notes: { 'disk-data': { isCleared: true } } },
      actions: ['plug disk-data'],
      states: ['disk-data Plugging'],
    },
  },
  'a disk that is not hotpluggable': {
    'stays in the guest if its volume is not hotpluggable': {
      ...{ disks: onScsi, fixed: claims, guest: [aDisk()] },
      ...{ actions: [], states: [] },
    },
    'is not plugged in': { disks: onScsi, fixed: claims, actions: [], states: [] },
    'stays in the guest if the spec has plugged: false': {
      ...{ disks: [{ ...onScsi[0]!, plugged: false }], fixed: claims, guest: [aDisk()] },
      ...{ actions: [], states: [] },
    },
    'is not plugged into a bus without hotplug': {
      ...{ disks: [{ name: 'data', disk: { bus: 'sata' } }], claims },
      ...{ actions: [], states: [] },
    },
    'stays in the guest if it is a CD-ROM drive': {
      ...{ disks: [{ name: 'data', cdrom: { bus: 'scsi' } }], claims, guest: [aDisk({ media: 'cdrom' })] },
      ...{ actions: [], states: [] },
    },
    'is not unplugged from a bus without hotplug': { guest: [aDisk({ bus: 'sata' })], actions: [], states: [] },
  },
  'an interface': {
    'is plugged in if the guest does not have it': {
      ...{ nics: [{ name: 'b', masquerade: {} }], actions: ['plug nic-b'], states: ['nic-b Plugging'] },
    },
    'is not reported if the guest was started with it': {
      ...{ nics: [{ name: 'b', masquerade: {} }], guest: [aNic('b')], actions: [], states: [] },
    },
    'is reported if it was plugged in': {
      ...{ nics: [{ name: 'b', masquerade: {} }], guest: [aNic('b')], reported: { 'nic-b': 'Plugging' } },
      ...{ actions: [], states: ['nic-b Ready'] },
    },
    'is unplugged if its state is absent': {
      ...{ nics: [{ name: 'b', masquerade: {}, state: 'absent' }], guest: [aNic('b')], actions: ['unplug nic-b'] },
    },
    'is unplugged if it was removed from the spec': { nics: [], guest: [aNic('b')], actions: ['unplug nic-b'] },
    'is not plugged in if it has a boot order': {
      ...{ nics: [{ name: 'b', masquerade: {}, bootOrder: 1 }], actions: [], states: [] },
    },
    'is not unplugged if it has a boot order': { guest: [aNic('b', { bootOrder: 1 })], actions: [], states: [] },
  },
  'several devices': {
    'are plugged and unplugged before others are cleared': {
      disks: onScsi,
      claims,
      guest: [aNic('b')],
      reported: { 'disk-old': 'Unplugging' },
      actions: ['plug disk-data', 'unplug nic-b', 'clear disk-old'],
    },
    'are checked again when the first of them is due': {
      disks: onScsi,
      claims,
      nics: [{ name: 'b', masquerade: {} }],
      notes: { 'disk-data': last('failed', 9000), 'nic-b': last('waiting', 200) },
      actions: ['recheck 200'],
    },
  },
};

function aVmi({ disks = [], claims: hot = {}, fixed = {}, nics = [], reported = {} }: Case): VirtualMachineInstance {
  const volumes = Object.entries({ ...hot, ...fixed }).map(([name, claimName]) => ({
    name,
    persistentVolumeClaim: { claimName, ...(name in hot ? { hotpluggable: true } : {}) },
  }));
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'db' },
    spec: {
      domain: { devices: { disks: [...disks], interfaces: [...nics], autoattachPodInterface: false } },
      volumes,
    },
    status: { hotplug: Object.entries(reported).map(([device, phase]) => ({ device, phase })) },
  };
}

for (const [group, cases] of Object.entries(groups)) {
  describe(group, () => {
    for (const [sentence, given] of Object.entries(cases)) {
      it(sentence, () => {
        const definition = aDefinition({ devices: given.guest ?? [] });
        const notes = new Map(Object.entries(given.notes ?? {}));
        const devices = hotplugDevices(aVmi(given), { definition, unplugging: given.leaving ?? [] }, notes);
        if (given.actions !== undefined) {
          const shown = decideHotplug(devices, notes, NOW).map((action) => {
            if (action.do === 'recheck') return `recheck ${action.afterMs}`;
            return 'device' in action ? `${action.do} ${action.device.id}` : action.do;
          });
          assert.deepEqual(shown, given.actions);
        }
        if (given.states !== undefined) {
          const states = hotplugStates(devices, notes, (id) => given.reported?.[id] !== undefined);
          const shown = states.map(({ device, phase, reason, message }) =>
            [device, phase, ...(reason === undefined ? [] : [`${reason}: ${message}`])].join(' '),
          );
          assert.deepEqual(shown, given.states);
        }
      });
    }
  });
}

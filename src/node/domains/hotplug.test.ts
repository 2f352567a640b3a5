import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Disk } from '#api/domain/disk.ts';
import type { Interface } from '#api/domain/interface.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { HotplugPhase } from '#api/virtual-machine-instance/status.ts';
import type { Device, DiskDevice, InterfaceDevice } from '#node/definition/domain-definition.ts';
import { decideHotplug, hotplugStates } from '#node/domains/decide-hotplug.ts';
import { hotplugDevices } from '#node/domains/hotplug-devices.ts';
import type { HotplugNote } from '#node/domains/hotplug-notes.ts';
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
  /** Of volumes that do not come and go. */
  readonly fixed?: Readonly<Record<string, string>>;
  readonly nics?: readonly Interface[];
  readonly guest?: readonly Device[];
  readonly leaving?: readonly string[];
  readonly told?: Readonly<Record<string, HotplugPhase>>;
  readonly notes?: Readonly<Record<string, HotplugNote>>;
  /** `plug disk-data`, `lookAgain 500`. */
  readonly actions?: readonly string[];
  /** `disk-data Ready`. */
  readonly states?: readonly string[];
}

const onScsi: readonly Disk[] = [{ name: 'data', disk: { bus: 'scsi' } }];
const claims = { data: 'a' };
const last = (is: 'waiting' | 'failed' | 'asked', inMs: number): HotplugNote => ({
  last: { is, reason: 'Because', message: 'm', tries: 1, dueAtMs: NOW + inMs },
});
const onA: HotplugNote = { claim: 'a' };

const groups: Record<string, Record<string, Case>> = {
  'a disk of a hotpluggable claim': {
    'is plugged in where the guest lacks it': {
      ...{ disks: onScsi, claims },
      actions: ['plug disk-data'],
      states: ['disk-data Plugging'],
    },
    'is plugged in on virtio, which is the bus unless another is named': {
      ...{ disks: [{ name: 'data' }], claims },
      actions: ['plug disk-data'],
    },
    'is tried again when it is time': {
      ...{ disks: onScsi, claims, notes: { 'disk-data': last('waiting', 0) } },
      actions: ['plug disk-data'],
    },
    'is not tried again before': {
      ...{ disks: onScsi, claims, notes: { 'disk-data': last('waiting', 500) } },
      actions: ['lookAgain 500'],
      states: ['disk-data Plugging Because: m'],
    },
    'is told as failed where it cannot be': {
      ...{ disks: onScsi, claims, notes: { 'disk-data': last('failed', 500) } },
      actions: ['lookAgain 500'],
      states: ['disk-data Failed PlugFailed: m'],
    },
    'is left alone where all is well': {
      ...{ disks: onScsi, claims, guest: [aDisk()], notes: { 'disk-data': onA } },
      actions: [],
      states: ['disk-data Ready'],
    },
    'is looked at by an agent that does not know its claim': {
      ...{ disks: onScsi, claims, guest: [aDisk()] },
      actions: ['verify disk-data'],
      states: ['disk-data Ready'],
    },
    'is looked at later where its claim cannot be told': {
      ...{ disks: onScsi, claims, guest: [aDisk()], notes: { 'disk-data': last('waiting', 500) } },
      actions: ['lookAgain 500'],
      states: ['disk-data Ready'],
    },
    'goes where it stands on another claim': {
      ...{ disks: onScsi, claims, guest: [aDisk()], notes: { 'disk-data': { claim: 'b' } } },
      actions: ['unplug disk-data'],
    },
    'goes where the spec has it no more': {
      ...{ guest: [aDisk()] },
      actions: ['unplug disk-data'],
      states: ['disk-data Unplugging WaitingForGuest: The guest has been asked to let go of it, and has not yet.'],
    },
    'goes where the spec says that it is not plugged in': {
      ...{ disks: [{ ...onScsi[0]!, plugged: false }], claims, guest: [aDisk()] },
      actions: ['unplug disk-data'],
    },
    'is asked for again when it is time': {
      ...{ guest: [aDisk()], leaving: ['disk-data'], notes: { 'disk-data': last('asked', 0) } },
      actions: ['unplug disk-data'],
    },
    'is not asked for again before': {
      ...{ guest: [aDisk()], leaving: ['disk-data'], notes: { 'disk-data': last('asked', 30_000) } },
      actions: ['lookAgain 30000'],
    },
    'that comes back while the guest lets go is waited for': {
      ...{ disks: onScsi, claims, guest: [aDisk()], leaving: ['disk-data'], notes: { 'disk-data': last('asked', 0) } },
      actions: [],
      states: ['disk-data Unplugging Because: m'],
    },
    'is asked for again all the same where it stands on another claim': {
      ...{ disks: onScsi, claims, guest: [aDisk()], leaving: ['disk-data'] },
      notes: { 'disk-data': { ...last('asked', 0), claim: 'b' } },
      actions: ['unplug disk-data'],
    },
    'is cleared away when the guest has let go': {
      ...{ told: { 'disk-data': 'Unplugging' } },
      actions: ['clear disk-data'],
      states: ['disk-data Unplugging'],
    },
    'is cleared away once': {
      ...{ told: { 'disk-data': 'Unplugging' }, notes: { 'disk-data': { isCleared: true } } },
      actions: [],
      states: [],
    },
    'is cleared away before another comes': {
      ...{ disks: onScsi, claims, told: { 'disk-data': 'Ready' } },
      actions: ['clear disk-data'],
      states: ['disk-data Unplugging'],
    },
    'whose claim was exchanged before it came is cleared away first': {
      disks: onScsi,
      claims,
      told: { 'disk-data': 'Plugging' },
      notes: { 'disk-data': { last: { ...last('waiting', 500).last!, claim: 'b' } } },
      actions: ['clear disk-data'],
    },
    'that is tried with the same claim is not': {
      disks: onScsi,
      claims,
      told: { 'disk-data': 'Plugging' },
      notes: { 'disk-data': { last: { ...last('waiting', 500).last!, claim: 'a' } } },
      actions: ['lookAgain 500'],
    },
    'comes when that is done': {
      ...{ disks: onScsi, claims, told: { 'disk-data': 'Ready' }, notes: { 'disk-data': { isCleared: true } } },
      actions: ['plug disk-data'],
      states: ['disk-data Plugging'],
    },
  },
  'a disk that does not come and go': {
    'is left alone where its volume is not hotpluggable': {
      ...{ disks: onScsi, fixed: claims, guest: [aDisk()] },
      ...{ actions: [], states: [] },
    },
    'is not plugged in': { disks: onScsi, fixed: claims, actions: [], states: [] },
    'is left alone where it is said to be unplugged': {
      ...{ disks: [{ ...onScsi[0]!, plugged: false }], fixed: claims, guest: [aDisk()] },
      ...{ actions: [], states: [] },
    },
    'is not plugged into a bus that cannot': {
      ...{ disks: [{ name: 'data', disk: { bus: 'sata' } }], claims },
      ...{ actions: [], states: [] },
    },
    'is no CD-ROM drive': {
      ...{ disks: [{ name: 'data', cdrom: { bus: 'scsi' } }], claims, guest: [aDisk({ media: 'cdrom' })] },
      ...{ actions: [], states: [] },
    },
    'is not unplugged from a bus that cannot': { guest: [aDisk({ bus: 'sata' })], actions: [], states: [] },
  },
  'an interface': {
    'is plugged in where the guest lacks it': {
      ...{ nics: [{ name: 'b', masquerade: {} }], actions: ['plug nic-b'], states: ['nic-b Plugging'] },
    },
    'is not worth a word where it always was there': {
      ...{ nics: [{ name: 'b', masquerade: {} }], guest: [aNic('b')], actions: [], states: [] },
    },
    'is told of where it came': {
      ...{ nics: [{ name: 'b', masquerade: {} }], guest: [aNic('b')], told: { 'nic-b': 'Plugging' } },
      ...{ actions: [], states: ['nic-b Ready'] },
    },
    'goes when it is absent': {
      ...{ nics: [{ name: 'b', masquerade: {}, state: 'absent' }], guest: [aNic('b')], actions: ['unplug nic-b'] },
    },
    'goes with the spec': { nics: [], guest: [aNic('b')], actions: ['unplug nic-b'] },
    'is not plugged in where people boot from it': {
      ...{ nics: [{ name: 'b', masquerade: {}, bootOrder: 1 }], actions: [], states: [] },
    },
    'stays where the guest boots from it': { guest: [aNic('b', { bootOrder: 1 })], actions: [], states: [] },
  },
  'several devices': {
    'are plugged and unplugged before what has gone is cleared away': {
      disks: onScsi,
      claims,
      guest: [aNic('b')],
      told: { 'disk-old': 'Unplugging' },
      actions: ['plug disk-data', 'unplug nic-b', 'clear disk-old'],
    },
    'are looked at again for the one that is due first': {
      disks: onScsi,
      claims,
      nics: [{ name: 'b', masquerade: {} }],
      notes: { 'disk-data': last('failed', 9000), 'nic-b': last('waiting', 200) },
      actions: ['lookAgain 200'],
    },
  },
};

function aVmi({ disks = [], claims: hot = {}, fixed = {}, nics = [], told = {} }: Case): VirtualMachineInstance {
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
    status: { hotplug: Object.entries(told).map(([device, phase]) => ({ device, phase })) },
  };
}

for (const [group, cases] of Object.entries(groups)) {
  describe(group, () => {
    for (const [sentence, given] of Object.entries(cases)) {
      it(sentence, () => {
        const definition = aDefinition({ devices: given.guest ?? [] });
        const notes = new Map(Object.entries(given.notes ?? {}));
        const devices = hotplugDevices(aVmi(given), { definition, leaving: given.leaving ?? [] }, notes);
        if (given.actions !== undefined) {
          const shown = decideHotplug(devices, notes, NOW).map((action) => {
            if (action.do === 'lookAgain') return `lookAgain ${action.afterMs}`;
            return 'device' in action ? `${action.do} ${action.device.id}` : action.do;
          });
          assert.deepEqual(shown, given.actions);
        }
        if (given.states !== undefined) {
          const states = hotplugStates(devices, notes, (id) => given.told?.[id] !== undefined);
          const shown = states.map(({ device, phase, reason, message }) =>
            [device, phase, ...(reason === undefined ? [] : [`${reason}: ${message}`])].join(' '),
          );
          assert.deepEqual(shown, given.states);
        }
      });
    }
  });
}

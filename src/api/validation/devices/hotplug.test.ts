/** Tests which changes of a running instance are allowed to components that may hotplug. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Disk } from '#api/domain/disk.ts';
import type { Interface, Network } from '#api/domain/interface.ts';
import type { VmiVolume } from '#api/domain/volume.ts';
import { aVmi, CONFIGURATION } from '#api/validation/testing/valid-objects.ts';
import { validateVirtualMachineInstance } from '#api/validation/kinds/validate-virtual-machine-instance.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';

const RESTRICTED = 'spec: Forbidden: update of VMI object is restricted';

const hot = (name: string): VmiVolume => ({ name, persistentVolumeClaim: { claimName: name, hotpluggable: true } });
const scsi = (name: string): Disk => ({ name, disk: { bus: 'scsi' } });
const lan: Interface = { name: 'lan', bridge: {} };
const LAN: Network = { name: 'lan', multus: { networkName: 'br0' } };

interface Lists {
  readonly disks: readonly Disk[];
  readonly volumes: readonly VmiVolume[];
  readonly interfaces: readonly Interface[];
  readonly networks: readonly Network[];
  readonly rest?: object;
}

interface Case {
  readonly before?: (lists: Lists) => Partial<Lists>;
  readonly change: (lists: Lists) => Partial<Lists>;
  readonly want?: string[];
}

const withData = ({ disks, volumes }: Lists) => ({
  disks: [...disks, scsi('data')],
  volumes: [...volumes, hot('data')],
});
const withoutNics = () => ({ interfaces: [], networks: [] });
const first = <T>([one]: readonly T[]): T => one ?? assert.fail('the list is empty');
const altered = <T>(list: readonly T[], patch: Partial<T>) => [{ ...first(list), ...patch }, ...list.slice(1)];

const cases: Record<string, Case> = {
  'adding a hotpluggable volume with its disk': { change: withData },
  'adding it before the others': {
    change: ({ disks, volumes }) => ({ disks: [scsi('data'), ...disks], volumes: [hot('data'), ...volumes] }),
  },
  'removing it with its disk': {
    before: withData,
    change: ({ disks, volumes }) => ({ disks: disks.slice(0, -1), volumes: volumes.slice(0, -1) }),
  },
  'adding one and removing another': {
    before: withData,
    change: ({ disks, volumes }) => ({
      disks: [...disks.slice(0, -1), scsi('more')],
      volumes: [...volumes.slice(0, -1), hot('more')],
    }),
  },
  'adding it and changing the grace period': {
    change: (lists) => ({ ...withData(lists), rest: { terminationGracePeriodSeconds: 0 } }),
  },
  'adding an interface with its network': {
    change: ({ interfaces, networks }) => ({ interfaces: [...interfaces, lan], networks: [...networks, LAN] }),
  },
  'making an interface absent': {
    before: ({ interfaces, networks }) => ({ interfaces: [...interfaces, lan], networks: [...networks, LAN] }),
    change: ({ interfaces }) => ({ interfaces: [first(interfaces), { ...lan, state: 'absent' }] }),
  },
  'making an absent interface present': {
    before: ({ interfaces, networks }) => ({
      interfaces: [...interfaces, { ...lan, state: 'absent' }],
      networks: [...networks, LAN],
    }),
    change: ({ interfaces }) => ({ interfaces: [first(interfaces), lan] }),
  },
  'adding an interface, and naming the default one': {
    before: withoutNics,
    change: () => ({
      interfaces: [{ name: 'default', masquerade: {} }, lan],
      networks: [{ name: 'default', pod: {} }, LAN],
    }),
  },

  'adding a volume that is not hotpluggable': {
    change: ({ disks, volumes }) => ({
      disks: [...disks, scsi('data')],
      volumes: [...volumes, { name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
    }),
    want: [RESTRICTED],
  },
  'removing a volume that is not hotpluggable': {
    change: ({ disks, volumes }) => ({ disks: disks.slice(1), volumes: volumes.slice(1) }),
    want: [RESTRICTED],
  },
  'making a volume hotpluggable': {
    change: ({ volumes }) => ({
      volumes: altered(volumes, { persistentVolumeClaim: { claimName: 'root', hotpluggable: true } }),
    }),
    want: [RESTRICTED],
  },
  'changing the claim of a hotpluggable volume': {
    before: withData,
    change: ({ volumes }) => ({ volumes: [...volumes.slice(0, -1), { ...hot('other'), name: 'data' }] }),
    want: [RESTRICTED],
  },
  'changing the bus of its disk': {
    before: withData,
    change: ({ disks }) => ({ disks: [...disks.slice(0, -1), { name: 'data', disk: { bus: 'virtio' } }] }),
    want: [RESTRICTED],
  },
  'changing the order of disks': { change: ({ disks }) => ({ disks: disks.toReversed() }), want: [RESTRICTED] },
  'removing an interface': { change: withoutNics, want: [RESTRICTED] },
  'adding an interface without naming the default one': {
    before: withoutNics,
    change: () => ({ interfaces: [lan], networks: [LAN] }),
    want: [RESTRICTED],
  },
  'adding an interface with a boot order': {
    change: ({ interfaces, networks }) => ({
      interfaces: [...interfaces, { ...lan, bootOrder: 9 }],
      networks: [...networks, LAN],
    }),
    want: [RESTRICTED],
  },
  'changing the MAC of an interface': {
    change: ({ interfaces }) => ({ interfaces: altered(interfaces, { macAddress: '02:00:00:00:00:02' }) }),
    want: [RESTRICTED],
  },
  'changing a network': {
    change: ({ networks }) => ({ networks: altered(networks, { pod: undefined, ...LAN, name: 'default' }) }),
    want: [RESTRICTED],
  },
  'adding a volume and changing something else': {
    change: (lists) => ({ ...withData(lists), rest: { hostname: 'other' } }),
    want: [RESTRICTED],
  },

  'adding a disk without its volume': {
    change: ({ disks }) => ({ disks: [...disks, scsi('data')] }),
    want: [RESTRICTED],
  },
  'adding a volume without its disk': {
    change: ({ volumes }) => ({ volumes: [...volumes, hot('data')] }),
    want: ['spec.volumes[2].name: Invalid value: "data": there is no disk with this name in spec.domain.devices.disks'],
  },
  'adding a disk on a bus without hotplug': {
    change: ({ disks, volumes }) => ({
      disks: [...disks, { name: 'data', disk: { bus: 'sata' } }],
      volumes: [...volumes, hot('data')],
    }),
    want: [
      `spec.domain.devices.disks[2].disk.bus: Invalid value: "sata": a hotpluggable volume requires bus to be 'scsi' or 'virtio'`,
    ],
  },
  'adding a disk with a boot order': {
    change: ({ disks, volumes }) => ({
      disks: [...disks, { ...scsi('data'), bootOrder: 7 }],
      volumes: [...volumes, hot('data')],
    }),
    want: [
      'spec.domain.devices.disks[2].bootOrder: Forbidden: a disk with a hotpluggable volume cannot be a boot device',
    ],
  },
  'adding a disk with an unsupported field': {
    change: ({ disks, volumes }) => ({
      disks: [...disks, { ...scsi('data'), io: 'native' } as Disk],
      volumes: [...volumes, hot('data')],
    }),
    want: ['spec.domain.devices.disks[2].io: Forbidden: is not supported yet'],
  },
  'adding a claim that another disk writes': {
    change: ({ disks, volumes }) => ({
      disks: [...disks, scsi('data')],
      volumes: [...volumes, { ...hot('root'), name: 'data' }],
    }),
    want: ['spec.volumes[2].persistentVolumeClaim.claimName: Duplicate value: "root"'],
  },
};

function listsOf({ domain, volumes = [], networks = [] }: VmiSpec): Lists {
  const { disks = [], interfaces = [] } = domain.devices ?? {};
  return { disks, volumes, interfaces, networks };
}

function specWith(spec: VmiSpec, change: (lists: Lists) => Partial<Lists>): VmiSpec {
  const now = listsOf(spec);
  const { disks, volumes, interfaces, networks, rest = {} } = { ...now, ...change(now) };
  const devices = { ...spec.domain.devices, disks: [...disks], interfaces: [...interfaces] };
  return { ...spec, ...rest, domain: { ...spec.domain, devices }, volumes: [...volumes], networks: [...networks] };
}

for (const [name, { before = () => ({}), change, want = [] }] of Object.entries(cases)) {
  const old = { ...aVmi(), spec: specWith(aVmi().spec, before) };
  const vmi = { ...old, spec: specWith(old.spec, change) };
  const errors = (hotplugs: boolean) =>
    validateVirtualMachineInstance(vmi, { configuration: CONFIGURATION, old, trusted: true, hotplugs }).map(
      ({ field, message }) => `${field}: ${message}`,
    );

  test(`${name}, by a component that may hotplug`, () => assert.deepEqual(errors(true), want));
  test(`${name}, by another component`, () => assert.deepEqual(errors(false), [RESTRICTED]));
}

test('existing errors do not prevent hotplug', () => {
  const configuration = { ...CONFIGURATION, emulatedMachines: ['pc-q35-9.*'] };
  const old = aVmi();
  const vmi = { ...old, spec: specWith(old.spec, withData) };
  assert.deepEqual(validateVirtualMachineInstance(vmi, { configuration, old, trusted: true, hotplugs: true }), []);
});

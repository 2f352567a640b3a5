/** The effective boot order of a VM in exported files, whether its spec has one or not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aVm } from '#api/validation/testing/valid-objects.ts';
import type { Disk } from '#api/domain/disk.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { readLibvirt } from '#formats/libvirt/read-libvirt.ts';
import { writeLibvirt } from '#formats/libvirt/write-libvirt.ts';
import type { MachineDescription } from '#formats/machine.ts';
import { readOvf } from '#formats/ovf/read-ovf.ts';
import { writeOvf } from '#formats/ovf/write-ovf.ts';
import { ovirtOvf } from '#formats/testing/ovirt-ovf.ts';
import { describeVm } from '#formats/vm/describe-vm.ts';
import { toManifests } from '#formats/vm/to-manifests.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';

const disk = (name: string, rest: Partial<Disk> = {}): Disk => ({ name, disk: { bus: 'virtio' }, ...rest });
const nic = (bootOrder?: number) => ({
  name: 'default',
  masquerade: {},
  ...(bootOrder === undefined ? {} : { bootOrder }),
});
/** Returns a recorded row with its own address. */
const row = (id: string, bus: number, bootOrder?: number): LearnedDevice => ({
  id,
  type: id.startsWith('nic') ? 'interface' : 'disk',
  device: id.startsWith('nic') ? 'virtio' : 'disk',
  name: id.slice(id.indexOf('-') + 1),
  managed: true,
  address: { type: 'pci', domain: '0x0000', bus: `0x0${bus}`, slot: '0x00', function: '0x0' },
  ...(bootOrder === undefined ? {} : { bootOrder }),
});

interface Case {
  readonly disks: Disk[];
  readonly nicOrder?: number;
  /** Absent: the VM never ran. */
  readonly recorded?: LearnedDevice[];
  /** Ids in boot order. */
  readonly want: string[];
  /** The disk that oVirt boots from. */
  readonly marked: string | undefined;
  /** True if an import writes boot orders to the spec. */
  readonly isNamed: boolean;
}

const cases: Record<string, Case> = {
  'uses the order of the record if the spec has none': {
    disks: [disk('root'), disk('data')],
    recorded: [row('disk-root', 1, 1), row('disk-data', 2, 2)],
    want: ['disk-root', 'disk-data'],
    marked: 'root',
    isNamed: false,
  },
  'uses only the order of the spec if it has one': {
    disks: [disk('root'), disk('data', { bootOrder: 1 })],
    recorded: [row('disk-root', 1, 1), row('disk-data', 2, 2)],
    want: ['disk-data'],
    marked: 'data',
    isNamed: true,
  },
  'keeps the network before the disk': {
    disks: [disk('root', { bootOrder: 2 })],
    nicOrder: 1,
    recorded: [row('nic-default', 1, 1), row('disk-root', 2, 2)],
    want: ['nic-default', 'disk-root'],
    marked: 'root',
    isNamed: true,
  },
  'uses the order of the disks in the spec if the VM never ran': {
    disks: [disk('z'), disk('a')],
    want: ['disk-z', 'disk-a'],
    marked: 'z',
    isNamed: false,
  },
  'uses the order of the last start if the disks were reordered since then': {
    disks: [disk('data'), disk('root')],
    recorded: [row('disk-root', 1, 1), row('disk-data', 2, 2)],
    want: ['disk-root', 'disk-data'],
    marked: 'root',
    isNamed: true,
  },
  'puts a new disk after the others': {
    disks: [disk('root'), disk('new')],
    recorded: [row('disk-root', 1, 1)],
    want: ['disk-root', 'disk-new'],
    marked: 'root',
    isNamed: false,
  },
  'includes a CD-ROM, but not floppies and unplugged disks, even with an order': {
    disks: [
      disk('off', { plugged: false, bootOrder: 1 }),
      { name: 'cd', cdrom: { bus: 'sata' } },
      { name: 'fd', floppy: {} },
      disk('root'),
    ],
    want: ['disk-cd', 'disk-root'],
    marked: 'root',
    isNamed: false,
  },
};

const claimOf = (name: string) =>
  ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: { resources: { requests: { storage: '1Gi' } } },
  }) as PersistentVolumeClaim;

function describeCase({ disks, nicOrder, recorded }: Case): MachineDescription {
  const isOld = disks.some(({ floppy }) => floppy !== undefined);
  const vm = aVm({
    spec: {
      template: {
        spec: {
          domain: {
            ...(isOld && { machine: { type: 'pc-i440fx-7.2' } }),
            devices: { disks, interfaces: [nic(nicOrder)] },
          },
          networks: [{ name: 'default', pod: {} }],
          volumes: disks.map(({ name }) => ({
            name,
            persistentVolumeClaim: { claimName: name, ...(name === 'new' && { hotpluggable: true }) },
          })),
        },
      },
    },
  });
  const record = recorded && ({ spec: {}, status: { devices: recorded } } as unknown as VirtualMachineIdentity);
  return describeVm(
    vm,
    record,
    disks.map(({ name }) => claimOf(name)),
  );
}

/** Returns the ids of devices with a boot order, in that order. */
function bootIds({ disks, nics }: Pick<MachineDescription, 'disks' | 'nics'>): string[] {
  return [...disks, ...nics]
    .filter(({ bootOrder }) => bootOrder !== undefined)
    .toSorted((a, b) => (a.bootOrder ?? 0) - (b.bootOrder ?? 0))
    .map(({ id }) => id);
}

const OPTIONS = { name: 'again', namespace: 'default' };

for (const [name, given] of Object.entries(cases)) {
  test(name, () => {
    const machine = describeCase(given);
    assert.deepEqual(bootIds(machine), given.want);
    const ofRows = machine.rows.filter(({ bootOrder }) => bootOrder !== undefined);
    assert.deepEqual(ofRows.map(({ id }) => id).toSorted(), given.want.toSorted());

    const ovf = writeOvf(machine);
    const marked = [...ovf.matchAll(/ovf:boot="true" ovf:disk-alias="([^"]*)"/g)].map(([, alias]) => alias);
    assert.deepEqual(marked, given.marked === undefined ? [] : [given.marked]);

    // Import, export, import.
    const read = readOvf(ovf);
    const { vm, claims } = toManifests(read, OPTIONS);
    const { disks = [] } = vm.spec.template.spec?.domain.devices ?? {};
    assert.equal(
      disks.some(({ bootOrder }) => bootOrder !== undefined),
      given.isNamed,
    );
    const again = describeVm(vm, undefined, claims);
    assert.deepEqual(bootIds(again), given.want);
    assert.deepEqual(bootIds(readOvf(writeOvf(again))), given.want);

    const domain = writeLibvirt(machine);
    assert.deepEqual(bootIds(readLibvirt(domain.xml)), given.want);
  });
}

test('a hotpluggable disk stays hotpluggable after export and import', () => {
  const machine = describeCase(cases['puts a new disk after the others'] as Case);
  const { vm } = toManifests(readOvf(writeOvf(machine)), OPTIONS);
  const volumes = vm.spec.template.spec?.volumes ?? [];
  assert.deepEqual(
    volumes.map(({ name, persistentVolumeClaim }) => [name, persistentVolumeClaim?.hotpluggable === true]),
    [
      ['root', false],
      ['new', true],
    ],
  );
});

test('uses an order that a user wrote into the file even if the file says that it is implied', () => {
  const ovf = writeOvf(describeCase(cases['uses the order of the record if the spec has none'] as Case));
  const edited = ovf.replace('<BootOrder>1</BootOrder>', '<BootOrder>3</BootOrder>');
  const read = readOvf(edited);
  assert.equal(read.bootOrderIsImplied, undefined);
  const { disks = [] } = toManifests(read, OPTIONS).vm.spec.template.spec?.domain.devices ?? {};
  assert.deepEqual(
    disks.map(({ name, bootOrder }) => [name, bootOrder]),
    [
      ['root', 3],
      ['data', 2],
    ],
  );
});

test("keeps the boot order of oVirt's machine through import, export and import", () => {
  const theirs = readOvf(ovirtOvf());
  assert.ok(bootIds(theirs).length > 1, 'several devices are booted from');
  const { vm, claims } = toManifests(theirs, OPTIONS);
  const again = readOvf(writeOvf(describeVm(vm, undefined, claims)));
  assert.deepEqual(bootIds(again), bootIds(theirs));
});

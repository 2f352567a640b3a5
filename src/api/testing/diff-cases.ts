/** Builders and a test driver for identityDiff: a VM as it was last seen, and variations of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { identityDiff, type DiffInput } from '#api/identity/identity-diff.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { IdentityStatus, VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { Stored } from '#kube/meta.ts';

export const UID = '5bf6ba70-0000-4000-8000-000000000001';
export const UUID = '0a000000-0000-4000-8000-000000000000';
export const OTHER = 'b0000000-0000-4000-8000-000000000000';
export const MADE_MAC = '02:11:22:33:44:55';

type Devices = NonNullable<VmiSpec['domain']['devices']>;
type Disk = NonNullable<Devices['disks']>[number];

export const root: Disk = { name: 'root', disk: {} };
export const data: Disk = { name: 'data', disk: { bus: 'scsi' } };
export const claim = (name: string) => ({ name, persistentVolumeClaim: { claimName: name } });

export function aSpec(devices: Devices = {}, domain: Partial<VmiSpec['domain']> = {}): VmiSpec {
  const { disks = [root, data], interfaces = [{ name: 'default', masquerade: {} }], ...others } = devices;
  return {
    domain: {
      machine: { type: 'q35' },
      firmware: { uuid: UUID },
      memory: { guest: '1Gi' },
      devices: { disks, interfaces, ...others },
      ...domain,
    },
    networks: [{ name: 'default', pod: {} }],
    volumes: disks.map(({ name }) => claim(name)),
  };
}

export const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid: UID, controller: true };
export const aVm = (spec: VmiSpec): Stored<VirtualMachine> => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { namespace: 'lab', name: 'db', uid: UID, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { runStrategy: 'Halted', template: { spec } },
});

export const pci = (bus: string, slot = '0x00') => ({ type: 'pci', domain: '0x0000', bus, slot, function: '0x0' });
export const drive = (unit: string) => ({ type: 'drive', controller: '0', bus: '0', target: '0', unit });
export const nicRow: LearnedDevice = { id: 'nic-default', type: 'interface', device: 'virtio', address: pci('0x01') };
export const rootRow: LearnedDevice = {
  id: 'disk-root',
  type: 'disk',
  device: 'disk',
  address: pci('0x02'),
  bootOrder: 1,
  specParams: { bus: 'virtio' },
};
export const dataRow: LearnedDevice = {
  id: 'disk-data',
  type: 'disk',
  device: 'disk',
  address: drive('0'),
  bootOrder: 2,
  specParams: { bus: 'scsi' },
};
/** A root port of the first slot. */
const portRow = (port: number): LearnedDevice => ({
  id: `rp${port}`,
  type: 'controller',
  device: 'pcie-root-port',
  address: { ...pci('0x00', '0x02'), function: `0x${port}` },
});
export const rows: LearnedDevice[] = [
  ...Array.from({ length: 8 }, (_, port) => portRow(port)),
  { id: 'scsi0', type: 'controller', device: 'virtio-scsi', address: pci('0x00', '0x06') },
  nicRow,
  rootRow,
  dataRow,
  { id: 'balloon0', type: 'balloon', device: 'memballoon', address: pci('0x00', '0x08') },
  { id: 'serial0', type: 'console', device: 'serial' },
];
export const LEARNED = '2026-02-01T00:00:00Z';
export const LATER = '2026-02-02T00:00:00Z';
export const aRecord = (status: IdentityStatus = {}, spec: object = {}): VirtualMachineIdentity => ({
  apiVersion: 'identity.selfsame.io/v1',
  kind: 'VirtualMachineIdentity',
  metadata: { namespace: 'lab', name: 'db', ownerReferences: [owner] },
  spec: { firmware: { uuid: UUID }, interfaces: [{ name: 'default', macAddress: MADE_MAC }], ...spec },
  status: { machine: { type: 'pc-q35-7.2' }, devices: rows, learnedAt: LEARNED, ...status },
});
export const without = (...ids: string[]) => rows.filter(({ id }) => !ids.includes(id));
export const replaceRow = (row: LearnedDevice) => rows.map((one) => (one.id === row.id ? row : one));
export const aVmi = (spec: VmiSpec, metadata: object = {}, status: object = {}): VirtualMachineInstance => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { namespace: 'lab', name: 'db', ownerReferences: [owner], ...metadata },
  spec,
  status: { phase: 'Running', machine: { type: 'pc-q35-7.2' }, ...status },
});

export interface Case {
  spec?: VmiSpec;
  record?: VirtualMachineIdentity | undefined;
  vmi?: VirtualMachineInstance;
  /** `what: from -> to`. */
  want: string[];
}

export const TEMPLATE_CHANGED = 'the template of the VM changed';

export function testDiffs(cases: Readonly<Record<string, Case>>): void {
  for (const [title, given] of Object.entries(cases)) {
    test(`reports ${title}`, () => {
      const input: DiffInput = {
        vm: aVm(given.spec ?? aSpec()),
        record: 'record' in given ? given.record : aRecord(),
        vmi: given.vmi,
        configuration: configurationOf(undefined),
      };
      assert.deepEqual(
        identityDiff(input).map(({ what, from, to, why }) => `${what}: ${from} -> ${to} (${why})`),
        given.want,
      );
    });
  }
}

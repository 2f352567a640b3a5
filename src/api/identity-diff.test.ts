import assert from 'node:assert/strict';
import { test } from 'node:test';
import { derivedMac } from '#api/derived-mac.ts';
import { identityDiff, type DiffInput } from '#api/identity-diff.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import { EPHEMERAL_HOTPLUG_ANNOTATION } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { IdentityStatus, VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { Stored } from '#kube/meta.ts';

const UID = '5bf6ba70-0000-4000-8000-000000000001';
const UUID = '0a000000-0000-4000-8000-000000000000';
const OTHER = 'b0000000-0000-4000-8000-000000000000';
const MADE_MAC = '02:11:22:33:44:55';

type Devices = NonNullable<VmiSpec['domain']['devices']>;
type Disk = NonNullable<Devices['disks']>[number];

const root: Disk = { name: 'root', disk: {} };
const data: Disk = { name: 'data', disk: { bus: 'scsi' } };
const claim = (name: string) => ({ name, persistentVolumeClaim: { claimName: name } });

function aSpec(devices: Devices = {}, domain: Partial<VmiSpec['domain']> = {}): VmiSpec {
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

const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid: UID, controller: true };
const aVm = (spec: VmiSpec): Stored<VirtualMachine> => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { namespace: 'lab', name: 'db', uid: UID, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { runStrategy: 'Halted', template: { spec } },
});

const pci = (bus: string, slot = '0x00') => ({ type: 'pci', domain: '0x0000', bus, slot, function: '0x0' });
const drive = (unit: string) => ({ type: 'drive', controller: '0', bus: '0', target: '0', unit });
const nicRow: LearnedDevice = { id: 'nic-default', type: 'interface', device: 'virtio', address: pci('0x01') };
const rootRow: LearnedDevice = {
  id: 'disk-root',
  type: 'disk',
  device: 'disk',
  address: pci('0x02'),
  bootOrder: 1,
  specParams: { bus: 'virtio' },
};
const dataRow: LearnedDevice = {
  id: 'disk-data',
  type: 'disk',
  device: 'disk',
  address: drive('0'),
  bootOrder: 2,
  specParams: { bus: 'scsi' },
};
const rows: LearnedDevice[] = [
  { id: 'rp0', type: 'controller', device: 'pcie-root-port', address: pci('0x00', '0x02') },
  { id: 'scsi0', type: 'controller', device: 'virtio-scsi', address: pci('0x00', '0x06') },
  nicRow,
  rootRow,
  dataRow,
  { id: 'balloon0', type: 'balloon', device: 'memballoon', address: pci('0x00', '0x08') },
  { id: 'serial0', type: 'console', device: 'serial' },
];
const LEARNED = '2026-02-01T00:00:00Z';
const LATER = '2026-02-02T00:00:00Z';
const aRecord = (status: IdentityStatus = {}, spec: object = {}): VirtualMachineIdentity => ({
  apiVersion: 'identity.selfsame.io/v1',
  kind: 'VirtualMachineIdentity',
  metadata: { namespace: 'lab', name: 'db', ownerReferences: [owner] },
  spec: { firmware: { uuid: UUID }, interfaces: [{ name: 'default', macAddress: MADE_MAC }], ...spec },
  status: { machine: { type: 'pc-q35-7.2' }, devices: rows, learnedAt: LEARNED, ...status },
});
const without = (...ids: string[]) => rows.filter(({ id }) => !ids.includes(id));
const replaced = (row: LearnedDevice) => rows.map((one) => (one.id === row.id ? row : one));
const aVmi = (spec: VmiSpec, metadata: object = {}, status: object = {}): VirtualMachineInstance => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { namespace: 'lab', name: 'db', ownerReferences: [owner], ...metadata },
  spec,
  status: { phase: 'Running', machine: { type: 'pc-q35-7.2' }, ...status },
});

interface Case {
  spec?: VmiSpec;
  record?: VirtualMachineIdentity | undefined;
  vmi?: VirtualMachineInstance;
  /** `what: from -> to`. */
  want: string[];
}

const SAYS_SO = 'the template of the VM says so';
const ASKED = 'the template asks for the guest agent, by a probe or its annotation';
const PORT = 'agent0: not there -> port org.qemu.guest_agent.0';
const serialRow: LearnedDevice = {
  ...{ id: 'virtio-serial0', type: 'controller', device: 'virtio-serial', address: pci('0x00', '0x07') },
};
const channelRow: LearnedDevice = {
  ...{ id: 'agent0', type: 'channel', device: 'unix', specParams: { name: 'org.qemu.guest_agent.0' } },
};
const cases: Record<string, Case> = {
  'nothing, when nothing changed': { want: [] },
  'nothing, when nothing changed and it runs': { vmi: aVmi(aSpec()), want: [] },
  'nothing of a VM that never ran': { spec: aSpec({ disks: [] }), record: aRecord({ devices: undefined }), want: [] },
  'nothing without a record': { record: undefined, spec: aSpec({}, { firmware: { uuid: OTHER } }), want: [] },
  'nothing of the record of another VM': {
    spec: aSpec({}, { firmware: { uuid: OTHER } }),
    record: { ...aRecord(), metadata: { name: 'db', ownerReferences: [{ ...owner, uid: 'other' }] } },
    want: [],
  },
  'nothing of an instance of another VM': {
    spec: aSpec({}, { memory: { guest: '2Gi' } }),
    vmi: aVmi(aSpec(), { ownerReferences: [] }),
    want: [],
  },
  'no video card where nobody asks for one': { spec: aSpec({ autoattachGraphicsDevice: undefined }), want: [] },
  'a video card, sound and a tablet that are asked for, with what they need': {
    spec: aSpec({
      autoattachGraphicsDevice: true,
      sound: { name: 's', model: 'ac97' },
      inputs: [{ name: 'pen', type: 'tablet' }],
    }),
    want: [
      'xhci0: not there -> usb, address given at the start (what is on the bus usb needs it)',
      `display0: not there -> vga, address given at the start (${SAYS_SO})`,
      `audio0: not there -> ac97, address given at the start (${SAYS_SO})`,
      `input-pen: not there -> tablet, address given at the start (${SAYS_SO})`,
    ],
  },
  'a video card that is refused, and sound of another model': {
    spec: aSpec({ autoattachGraphicsDevice: false, sound: { name: 's', model: 'ac97' } }),
    record: aRecord({
      devices: [
        ...rows,
        { id: 'display0', type: 'video', device: 'vga', address: pci('0x00', '0x01') },
        { id: 'audio0', type: 'sound', device: 'ich9', address: pci('0x00', '0x1b') },
      ],
    }),
    want: [
      `audio0: ich9, address 0000:00:1b.0 -> ac97, address 0000:00:1b.0 (${SAYS_SO})`,
      'display0: vga, address 0000:00:01.0 -> not there (the template no longer has it)',
    ],
  },
  'the line to a guest agent that a probe asks for, with its controller': {
    spec: { ...aSpec(), readinessProbe: { guestAgentPing: {} } },
    want: [`virtio-serial0: not there -> virtio-serial, address given at the start (${ASKED})`, `${PORT} (${ASKED})`],
  },
  'only the port, where the controller is there': {
    spec: { ...aSpec(), livenessProbe: { exec: { command: ['true'] } } },
    record: aRecord({ devices: [...rows, serialRow] }),
    want: [`${PORT} (${ASKED})`],
  },
  'no port where nobody asks, although the controller is there': {
    record: aRecord({ devices: [...rows, serialRow] }),
    want: [],
  },
  'nothing of a line that is there already': {
    spec: { ...aSpec(), readinessProbe: { guestAgentPing: {} } },
    record: aRecord({ devices: [...rows, serialRow, channelRow] }),
    want: [],
  },
  'the port that a VM of another manager gets at its first start here': {
    record: aRecord({ devices: [...rows, serialRow], learnedAt: undefined }),
    want: [`${PORT} (a VM of another manager that has the controller gets the port at its first start here)`],
  },
  'features of the processor, clock and chassis, against the instance': {
    vmi: aVmi(aSpec()),
    spec: aSpec({}, { cpu: { features: [{ name: 'avx2' }] }, clock: { timezone: 'UTC' }, chassis: { asset: 'a' } }),
    want: [
      `cpu features: "none" -> [{"name":"avx2"}] (${SAYS_SO})`,
      `chassis: "none" -> {"asset":"a"} (${SAYS_SO})`,
      `clock: "none" -> {"timezone":"UTC"} (${SAYS_SO})`,
    ],
  },
  'another uuid': {
    spec: aSpec({}, { firmware: { uuid: OTHER } }),
    want: [`uuid: ${UUID} -> ${OTHER} (${SAYS_SO})`],
  },
  'no other uuid in capitals': { spec: aSpec({}, { firmware: { uuid: UUID.toUpperCase() } }), want: [] },
  'a serial, where there was none': {
    spec: aSpec({}, { firmware: { uuid: UUID, serial: 's-1' } }),
    want: [`serial: none -> s-1 (${SAYS_SO})`],
  },
  'no loss of a serial that the record keeps': {
    record: aRecord({}, { firmware: { uuid: UUID, serial: 's-1' } }),
    want: [],
  },
  'another machine type of the same chipset': {
    spec: aSpec({}, { machine: { type: 'pc-q35-6.2' } }),
    want: [`machine type: pc-q35-7.2 -> pc-q35-6.2 (${SAYS_SO})`],
  },
  'an alias in place of a machine type, while it runs': {
    vmi: aVmi(aSpec({}, { machine: { type: 'pc-q35-6.2' } }), {}, { machine: { type: 'pc-q35-6.2' } }),
    record: aRecord({ machine: { type: 'pc-q35-6.2' } }),
    want: [`machine type: pc-q35-6.2 -> q35 (resolved at the start) (${SAYS_SO})`],
  },
  'another chipset, and so all addresses': {
    spec: aSpec({}, { machine: { type: 'pc' } }),
    want: [
      `machine type: pc-q35-7.2 -> pc (resolved at the start) (${SAYS_SO})`,
      'addresses of all devices: of q35 -> of i440fx (addresses of the chipset q35 mean nothing on i440fx: every device gets a new one)',
    ],
  },
  'memory, CPUs and firmware, against the instance': {
    vmi: aVmi(aSpec()),
    spec: aSpec(
      {},
      {
        memory: { guest: '2Gi' },
        cpu: { cores: 4 },
        firmware: { uuid: UUID, bootloader: { efi: { secureBoot: false } } },
      },
    ),
    want: [
      `cpu topology: 1 sockets, 1 cores, 1 threads -> 1 sockets, 4 cores, 1 threads (${SAYS_SO})`,
      `memory: 1Gi -> 2Gi (${SAYS_SO})`,
      `firmware: BIOS -> EFI (${SAYS_SO})`,
    ],
  },
  'secure boot with what it stands on': {
    vmi: aVmi(aSpec()),
    spec: aSpec({}, { firmware: { uuid: UUID, bootloader: { efi: {} } } }),
    want: [`firmware: BIOS -> EFI with secure boot (${SAYS_SO})`, `smm: off -> on (${SAYS_SO})`],
  },
  'no other memory in other units': { vmi: aVmi(aSpec()), spec: aSpec({}, { memory: { guest: '1024Mi' } }), want: [] },
  'a MAC that the template names now': {
    spec: aSpec({ interfaces: [{ name: 'default', masquerade: {}, macAddress: 'de:ad:00:00:be:ef' }] }),
    want: [`MAC of nic-default: ${MADE_MAC} -> de:ad:00:00:be:ef (${SAYS_SO})`],
  },
  'a MAC that the template names no more': {
    vmi: aVmi(aSpec({ interfaces: [{ name: 'default', masquerade: {}, macAddress: 'de:ad:00:00:be:ef' }] })),
    record: aRecord({}, { interfaces: [] }),
    want: [
      `MAC of nic-default: de:ad:00:00:be:ef -> ${derivedMac(UID, 'default')} (the template names no MAC address any more: one is made and kept)`,
    ],
  },
  'no other MAC, written otherwise': {
    spec: aSpec({ interfaces: [{ name: 'default', masquerade: {}, macAddress: '02-11-22-33-44-55' }] }),
    want: [],
  },
  'a new disk, a new interface': {
    spec: aSpec({
      disks: [root, data, { name: 'more', disk: {} }],
      interfaces: [
        { name: 'default', masquerade: {} },
        { name: 'lan', bridge: {}, model: 'e1000e' },
      ],
    }),
    want: [
      'nic-lan: not there -> e1000e, address given at the start (new in the template)',
      'disk-more: not there -> disk on virtio, address given at the start (new in the template)',
    ],
  },
  'a new disk at an address of its own': {
    spec: aSpec({ disks: [root, data, { name: 'more', disk: { pciAddress: '0000:09:00.0' } }] }),
    want: ['disk-more: not there -> disk on virtio, address 0000:09:00.0 (new in the template)'],
  },
  'a new disk that is to be booted first': {
    spec: aSpec({ disks: [{ name: 'more', disk: {} }, root, data] }),
    want: [
      'disk-more: not there -> disk on virtio, address given at the start (new in the template)',
      'boot order: disk-root, disk-data -> disk-more, disk-root, disk-data (disks boot in the order in which the template has them)',
    ],
  },
  'a disk that the template has no more': {
    spec: aSpec({ disks: [root] }),
    want: ['disk-data: disk on scsi, address scsi 0:0:0:0 -> not there (the template no longer has it)'],
  },
  'a disk that the record has forgotten already': {
    spec: aSpec({ disks: [root] }),
    record: aRecord({
      devices: without('disk-data'),
      history: [
        { at: LATER, what: 'disk-data is gone from bus=0,controller=0,target=0,type=drive,unit=0', cause: 'a change' },
      ],
    }),
    want: ['disk-data: disk, address drive 0:0:0:0 -> not there (the template no longer has it)'],
  },
  'nothing that had gone before the guest was looked at': {
    spec: aSpec({ disks: [root] }),
    record: aRecord({
      devices: without('disk-data'),
      history: [{ at: LEARNED, what: 'disk-data is gone from bus=0,type=drive,unit=0', cause: 'a start' }],
    }),
    want: [],
  },
  'a disk that went and came back': {
    record: aRecord({
      devices: replaced({ ...rootRow, address: {} }),
      history: [
        { at: LATER, what: `disk-root is unplugged; ${placeText(pci('0x02'))} is released`, cause: 'a change' },
        { at: LATER, what: 'disk-root is plugged in at no address', cause: 'a change' },
      ],
    }),
    want: [
      'disk-root: 0000:02:00.0 -> given at the start (it was detached or unplugged meanwhile, and its place was released)',
    ],
  },
  'a disk that is unplugged': {
    spec: aSpec({ disks: [root, { ...data, plugged: false }] }),
    want: [
      'disk-data: disk on scsi, address scsi 0:0:0:0 -> unplugged (the template has it unplugged; its place is released)',
    ],
  },
  'an interface that is absent': {
    spec: aSpec({ interfaces: [{ name: 'default', masquerade: {}, state: 'absent' }] }),
    want: ['nic-default: virtio, address 0000:01:00.0 -> unplugged (the template has it absent)'],
  },
  'nothing of one that was absent before': {
    spec: aSpec({ interfaces: [{ name: 'default', masquerade: {}, state: 'absent' }] }),
    record: aRecord({ devices: replaced({ ...nicRow, plugged: false }) }),
    want: [],
  },
  'an interface that comes back to its place': {
    record: aRecord({ devices: replaced({ ...nicRow, plugged: false }) }),
    want: ['nic-default: unplugged -> virtio, address 0000:01:00.0 (the template has it plugged in)'],
  },
  'a device that is pinned elsewhere': {
    spec: aSpec({ interfaces: [{ name: 'default', masquerade: {}, pciAddress: '0000:07:00.0' }] }),
    want: ['nic-default: 0000:01:00.0 -> 0000:07:00.0 (the template names this address)'],
  },
  'nothing of one that is pinned where it is': {
    spec: aSpec({ interfaces: [{ name: 'default', masquerade: {}, pciAddress: '0000:01:00.0' }] }),
    want: [],
  },
  'another bus': {
    spec: aSpec({ disks: [root, { name: 'data', disk: { bus: 'sata' } }] }),
    want: [`disk-data: disk on scsi, address scsi 0:0:0:0 -> disk on sata, address given at the start (${SAYS_SO})`],
  },
  'another model': {
    spec: aSpec({ interfaces: [{ name: 'default', masquerade: {}, model: 'e1000e' }] }),
    want: [`nic-default: virtio, address 0000:01:00.0 -> e1000e, address 0000:01:00.0 (${SAYS_SO})`],
  },
  'a first SCSI disk, with its controller': {
    record: aRecord({ devices: without('scsi0', 'disk-data') }),
    want: [
      'disk-data: not there -> disk on scsi, address given at the start (new in the template)',
      'scsi0: not there -> virtio-scsi, address given at the start (a disk on the bus scsi needs it)',
    ],
  },
  'a TPM, and no balloon': {
    spec: aSpec({ tpm: {}, autoattachMemBalloon: false }),
    want: [
      `tpm0: not there -> crb (${SAYS_SO})`,
      'balloon0: memballoon, address 0000:00:08.0 -> not there (the template no longer has it)',
    ],
  },
  'a TPM that goes, of which only the instance tells': {
    vmi: aVmi(aSpec({ tpm: {} })),
    record: aRecord({ devices: [...rows, { id: 'tpm0', type: 'tpm', device: 'crb' }] }),
    want: [`tpm0: crb -> not there (${SAYS_SO})`],
  },
  'nothing of the row of a TPM that went long ago': {
    record: aRecord({ devices: [...rows, { id: 'tpm0', type: 'tpm', device: 'crb' }] }),
    want: [],
  },
  'a volume that was plugged in for this run only': {
    vmi: aVmi(aSpec(), { annotations: { [EPHEMERAL_HOTPLUG_ANNOTATION]: '["late"]' } }),
    record: aRecord({
      devices: [
        ...rows,
        { id: 'disk-late', type: 'disk', device: 'disk', address: drive('1'), specParams: { bus: 'scsi' } },
      ],
    }),
    want: ['disk-late: disk on scsi, address scsi 0:0:0:1 -> not there (it was plugged in for this run only)'],
  },
  'no boot order of what was plugged in while it ran': {
    spec: aSpec({ disks: [root, data, { name: 'late', disk: { bus: 'scsi' } }] }),
    record: aRecord({
      devices: [
        ...rows,
        { id: 'disk-late', type: 'disk', device: 'disk', address: drive('1'), specParams: { bus: 'scsi' } },
      ],
    }),
    want: [],
  },
  'another boot order': {
    spec: aSpec({
      disks: [root, { ...data, bootOrder: 2 }],
      interfaces: [{ name: 'default', masquerade: {}, bootOrder: 1 }],
    }),
    want: ['boot order: disk-root, disk-data -> nic-default, disk-data (the template names this order)'],
  },
  'what is in a disk, its serial, and whether it can be written': {
    vmi: aVmi(aSpec({ disks: [root, { name: 'data', disk: { bus: 'scsi' }, serial: 'a' }] })),
    spec: {
      ...aSpec({ disks: [root, { name: 'data', disk: { bus: 'scsi', readonly: true }, serial: 'b' }] }),
      volumes: [claim('root'), { name: 'data', persistentVolumeClaim: { claimName: 'other' } }],
    },
    want: [
      `serial of disk-data: a -> b (${SAYS_SO})`,
      `access of disk-data: read-write -> read-only (${SAYS_SO})`,
      `content of disk-data: claim data -> claim other (${SAYS_SO})`,
    ],
  },
  'a new disk of a guest whose devices nobody has read yet': {
    vmi: aVmi(aSpec({ disks: [root] })),
    record: aRecord({ devices: undefined, learnedAt: undefined }),
    want: ['disk-data: not there -> disk on scsi, address given at the start (new in the template)'],
  },
  'what an imported machine will have besides': {
    record: aRecord({ devices: without('serial0'), learnedAt: undefined }),
    want: [`serial0: not there -> serial (${SAYS_SO})`],
  },
};

function placeText(address: Record<string, string>): string {
  return Object.keys(address)
    .sort()
    .map((key) => `${key}=${address[key]}`)
    .join(',');
}

for (const [title, given] of Object.entries(cases)) {
  test(`tells ${title}`, () => {
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

test('a template without a machine type has the default of the KubeVirt object', () => {
  const configuration = configurationOf({ spec: { configuration: { machineType: 'pc-q35-6.2' } } });
  const diff = identityDiff({ vm: aVm(aSpec({}, { machine: {} })), record: aRecord(), configuration });
  assert.deepEqual(diff, [
    {
      what: 'machine type',
      from: 'pc-q35-7.2',
      to: 'pc-q35-6.2',
      why: 'the template names no machine type: the default of the KubeVirt object counts',
    },
  ]);
});

test('an annotation of the template asks for the guest agent, too', () => {
  const vm = aVm(aSpec());
  const template = { ...vm.spec.template, metadata: { annotations: { 'selfsame.io/guest-agent': 'true' } } };
  const asking = { ...vm, spec: { ...vm.spec, template } };
  const found = identityDiff({ vm: asking, record: aRecord(), configuration: configurationOf(undefined) });
  assert.deepEqual(
    found.map(({ what }) => what),
    ['virtio-serial0', 'agent0'],
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseImportedDevices } from '#api/devices/imported-devices.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import { isUnownedStateOf } from '#api/storage/persistent-state.ts';
import { CONFIGURATION, aVm } from '#api/validation/testing/valid-objects.ts';
import { validateVirtualMachine } from '#api/validation/kinds/validate-virtual-machine.ts';
import type { CloudInitNoCloud } from '#api/domain/volume.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { FileFormatError } from '#formats/findings.ts';
import { readLibvirt } from '#formats/libvirt/read-libvirt.ts';
import { writeLibvirt } from '#formats/libvirt/write-libvirt.ts';
import type { MachineDescription } from '#formats/machine.ts';
import { readOvf } from '#formats/ovf/read-ovf.ts';
import { writeOvf } from '#formats/ovf/write-ovf.ts';
import { ovirtOvf } from '#formats/testing/ovirt-ovf.ts';
import { PLAIN_OVF } from '#formats/testing/plain-ovf.ts';
import { includeSecrets } from '#formats/vm/cloud-init.ts';
import { describeVm } from '#formats/vm/describe-vm.ts';
import { toManifests, type ManifestOptions } from '#formats/vm/to-manifests.ts';
import type { PersistentVolumeClaim, Secret } from '#kube/core-kinds.ts';

const GIB = 1024 ** 3;
const at = (bus: string) => ({ type: 'pci', domain: '0x0000', bus, slot: '0x00', function: '0x0' });

const record = {
  apiVersion: 'identity.selfsame.io/v1',
  kind: 'VirtualMachineIdentity',
  metadata: { name: 'db' },
  spec: {
    firmware: { uuid: '5d307ca9-b3ef-428c-8861-06e72d69f223' },
    interfaces: [{ name: 'lan', macAddress: '02:00:00:00:00:07' }],
  },
  status: {
    machine: { type: 'pc-q35-7.2' },
    devices: [
      {
        id: 'rp0',
        type: 'controller',
        device: 'pcie-root-port',
        address: { ...at('0x00'), slot: '0x02' },
        managed: false,
        specParams: { index: '1', model: 'pcie-root-port' },
      },
      {
        id: 'rp1',
        type: 'controller',
        device: 'pcie-root-port',
        address: { ...at('0x00'), slot: '0x02', function: '0x1' },
        managed: false,
        specParams: { index: '2', model: 'pcie-root-port' },
      },
      {
        id: 'scsi0',
        type: 'controller',
        device: 'virtio-scsi',
        address: { ...at('0x00'), slot: '0x06' },
        managed: false,
      },
      { id: 'disk-root', type: 'disk', device: 'disk', name: 'root', address: at('0x02'), managed: true },
      { id: 'nic-default', type: 'interface', device: 'virtio', name: 'default', address: at('0x01'), managed: true },
      {
        id: 'balloon0',
        type: 'balloon',
        device: 'memballoon',
        address: { ...at('0x00'), slot: '0x08' },
        managed: true,
      },
      { id: 'disk-gone', type: 'disk', device: 'disk', name: 'gone', address: at('0x05'), managed: true },
      { id: 'serial0', type: 'console', device: 'serial', managed: true },
    ],
  },
} as VirtualMachineIdentity;

const claims = [
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'root' },
    spec: { resources: { requests: { storage: '1Gi' } } },
    status: { capacity: { storage: '2Gi' } },
  },
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'logs' },
    spec: { resources: { requests: { storage: '3Gi' } } },
  },
] as PersistentVolumeClaim[];

const richVm = () =>
  aVm({
    spec: {
      template: {
        spec: {
          domain: {
            firmware: { bootloader: { efi: { secureBoot: true } } },
            features: { smm: { enabled: true } },
            devices: {
              tpm: {},
              rng: {},
              disks: [
                { name: 'root', bootOrder: 1, serial: 'S1', cache: 'writeback', disk: { bus: 'virtio' } },
                { name: 'logs', disk: { bus: 'scsi', readonly: true }, plugged: false, optional: true },
                { name: 'seed', cdrom: { bus: 'sata' } },
                { name: 'san', lun: { bus: 'scsi' } },
              ],
              interfaces: [
                { name: 'default', macAddress: '02-00-00-00-00-01', bootOrder: 2, masquerade: {} },
                { name: 'lan', model: 'e1000e', bridge: {}, state: 'absent' },
              ],
            },
          },
          networks: [
            { name: 'default', pod: {} },
            { name: 'lan', multus: { networkName: 'br1' } },
          ],
          volumes: [
            { name: 'root', persistentVolumeClaim: { claimName: 'root' } },
            { name: 'logs', persistentVolumeClaim: { claimName: 'logs', hotpluggable: true } },
            { name: 'seed', cloudInitNoCloud: { userData: '#cloud-config' } },
            { name: 'san', directLun: { guid: '36001405' } },
          ],
          nodeSelector: { a: 'b' },
        },
      },
    },
  });

test('describes a VM with its record and claims', () => {
  const machine = describeVm(richVm(), record, claims);
  assert.deepEqual(
    {
      name: machine.name,
      uuid: machine.uuid,
      serial: machine.serial,
      machineType: machine.machineType,
      chipset: machine.chipset,
      cpu: machine.cpu,
      memoryMib: machine.memoryMib,
      firmware: machine.firmware,
      tpm: machine.tpm,
    },
    {
      name: 'db',
      uuid: '5d307ca9-b3ef-428c-8861-06e72d69f223',
      serial: 'A-1',
      machineType: 'pc-q35-7.2',
      chipset: 'q35',
      cpu: { sockets: 1, cores: 2, threads: 1, model: 'host-model' },
      memoryMib: 256,
      firmware: 'efi-secure',
      tpm: true,
    },
  );
  assert.deepEqual(machine.disks, [
    {
      id: 'disk-root',
      name: 'root',
      media: 'disk',
      bus: 'virtio',
      file: 'root.img',
      sizeBytes: 2 * GIB,
      format: 'raw',
      bootOrder: 1,
      readonly: false,
      plugged: true,
      optional: false,
      serial: 'S1',
      cache: 'writeback',
    },
    {
      id: 'disk-logs',
      name: 'logs',
      media: 'disk',
      bus: 'scsi',
      file: 'logs.img',
      sizeBytes: 3 * GIB,
      format: 'raw',
      readonly: true,
      plugged: false,
      optional: true,
      hotpluggable: true,
    },
    {
      id: 'disk-seed',
      name: 'seed',
      media: 'cdrom',
      bus: 'sata',
      sizeBytes: 1_048_576,
      cloudInit: { userData: { base64: Buffer.from('#cloud-config').toString('base64') } },
      format: 'raw',
      readonly: true,
      plugged: true,
      optional: false,
    },
    {
      id: 'disk-san',
      name: 'san',
      media: 'lun',
      bus: 'scsi',
      format: 'raw',
      readonly: false,
      plugged: true,
      optional: false,
      lun: { guid: '36001405' },
    },
  ]);
  assert.deepEqual(machine.nics, [
    {
      id: 'nic-default',
      name: 'default',
      model: 'virtio',
      mac: '02:00:00:00:00:01',
      network: 'pod',
      bootOrder: 2,
      plugged: true,
    },
    { id: 'nic-lan', name: 'lan', model: 'e1000e', mac: '02:00:00:00:00:07', network: 'br1', plugged: false },
  ]);
  const rows = new Map(machine.rows.map((row) => [row.id, row]));
  assert.deepEqual([...rows.keys()].sort(), [
    'balloon0',
    'disk-logs',
    'disk-root',
    'disk-san',
    'disk-seed',
    'nic-default',
    'nic-lan',
    'rng0',
    'rp0',
    'rp1',
    'scsi0',
    'serial0',
    'tpm0',
  ]);
  assert.deepEqual(rows.get('disk-root'), {
    id: 'disk-root',
    type: 'disk',
    device: 'disk',
    name: 'root',
    address: at('0x02'),
    bootOrder: 1,
    managed: true,
  });
  assert.equal(rows.get('nic-lan')?.plugged, false);
  assert.match(machine.notes.join('\n'), /nodeSelector/);
});

test('notes settings that the guest can see and that are not written', () => {
  const vm = richVm();
  const domain = {
    ...vm.spec.template.spec!.domain,
    ...{ chassis: { asset: '7' }, clock: { timezone: 'UTC' }, features: { hyperv: { relaxed: {} } } },
  };
  const other = { ...vm, spec: { ...vm.spec, template: { spec: { ...vm.spec.template.spec, domain } } } };
  const made = { ...record, spec: { ...record.spec, smbios: { manufacturer: 'Example' } } };
  const note = /the guest can see and that are not written: chassis, clock, features\.hyperv, the SMBIOS strings$/m;
  assert.match(describeVm(other, made, claims).notes.join('\n'), note);
  assert.doesNotMatch(describeVm(vm, record, claims).notes.join('\n'), /the guest can see/);
});

test('describes a VM that never ran from its spec only', () => {
  const machine = describeVm(
    aVm({
      metadata: { uid: 'u1' },
      spec: {
        template: { spec: { domain: { devices: { interfaces: null, autoattachMemBalloon: false } }, networks: null } },
      },
    }),
    undefined,
    [],
  );
  assert.match(machine.nics[0]?.mac ?? '', /^02:/);
  assert.equal(machine.nics[0]?.network, 'pod');
  assert.ok(machine.rows.every(({ address }) => address === undefined));
  assert.ok(!machine.rows.some(({ type }) => type === 'balloon'));
});

const options: ManifestOptions = { name: 'db', namespace: 'golden' };
const LUNS_ALLOWED = { ...CONFIGURATION, directLuns: ['*'] };
const i440fx = configurationOf({ spec: { configuration: { emulatedMachines: ['*'], directLuns: ['*'] } } });

function importedInto(vm: VirtualMachine) {
  return parseImportedDevices(vm.metadata.annotations?.[IMPORTED_DEVICES_ANNOTATION] ?? '');
}

test('exports the persistent state as a file, and imports it into a claim that the VM finds', () => {
  const keeper = richVm();
  const { domain } = keeper.spec.template.spec!;
  Object.assign(domain.devices!.tpm!, { persistent: true });
  domain.firmware!.bootloader = { efi: { secureBoot: true, persistent: true } };
  const out = describeVm(keeper, record, claims);
  assert.deepEqual(out.state, { tpm: true, efi: true });
  assert.match(writeLibvirt(out).notes.join('\n'), /persistent state of TPM and EFI is not written: both start empty/);

  const held = readOvf(writeOvf({ ...out, state: { tpm: true, efi: true, file: 'db-state.bin', sizeBytes: 7 } }));
  const { vm, claims: made } = toManifests(held, { ...options, name: 'copy', storageClass: 'fast' });
  assert.deepEqual(validateVirtualMachine(vm, { configuration: LUNS_ALLOWED }), []);
  const { devices, firmware } = vm.spec.template.spec!.domain;
  assert.deepEqual([devices?.tpm, firmware?.bootloader?.efi?.persistent], [{ persistent: true }, true]);
  const claim = made.find((one) => isUnownedStateOf(one, 'copy'));
  assert.ok(claim !== undefined);
  assert.deepEqual([claim.spec.storageClassName, claim.spec.resources?.requests], ['fast', { storage: '10Mi' }]);

  const bare = toManifests(readOvf(writeOvf(out)), options);
  assert.match(bare.notes.join('\n'), /does not contain the persistent state of TPM and EFI: both start empty/);
  assert.deepEqual(bare.vm.spec.template.spec?.domain.devices?.tpm, { persistent: true });
});

/** Returns a VM whose disk seed has this cloud-init data. */
function aSeededVm(cloudInitNoCloud: CloudInitNoCloud): VirtualMachine {
  const vm = richVm();
  const spec = vm.spec.template.spec!;
  const volumes = spec.volumes!.map((volume) => (volume.name === 'seed' ? { name: 'seed', cloudInitNoCloud } : volume));
  return {
    ...vm,
    metadata: { ...vm.metadata, labels: { tier: 'gold' } },
    spec: {
      ...vm.spec,
      template: { metadata: { labels: { app: 'shop' } }, spec: { ...spec, hostname: 'ledger', volumes } },
    },
  };
}
const seedOf = ({ vm }: { readonly vm: VirtualMachine }) =>
  vm.spec.template.spec?.volumes?.find(({ name }) => name === 'seed');
const base64 = (text: string) => Buffer.from(text).toString('base64');

test('an OVF carries cloud-init data, labels and the host name, so that cloud-init sees the same instance', () => {
  const source = { userData: '#cloud-config\nélan: "ü"\n', networkData: 'version: 2\n' };
  const made = toManifests(readOvf(writeOvf(describeVm(aSeededVm(source), record, claims))), options);
  assert.deepEqual(validateVirtualMachine(made.vm, { configuration: LUNS_ALLOWED }), []);
  assert.deepEqual(seedOf(made), { name: 'seed', cloudInitNoCloud: source });
  assert.deepEqual(
    made.claims.map(({ metadata }) => metadata.name),
    ['db-root', 'db-logs'],
  );
  assert.deepEqual(made.secrets, []);
  const { template } = made.vm.spec;
  assert.deepEqual([made.vm.metadata.labels, template.metadata?.labels], [{ tier: 'gold' }, { app: 'shop' }]);
  const meta = (vm: VirtualMachine) => [
    vm.spec.template.spec?.hostname,
    vm.spec.template.spec?.domain.firmware?.uuid ?? record.spec.firmware?.uuid,
  ];
  assert.deepEqual(meta(made.vm), meta(aSeededVm(source)), 'the instance-id and the host name are the same');
  const binary = { userDataBase64: Buffer.from([0, 255, 10]).toString('base64') };
  const odd = toManifests(readOvf(writeOvf(describeVm(aSeededVm(binary), record, claims))), options);
  assert.deepEqual(seedOf(odd), { name: 'seed', cloudInitNoCloud: binary });
  const { notes } = writeLibvirt(describeVm(aSeededVm(source), record, claims));
  assert.match(notes.join('\n'), /the cloud-init data of the disk seed is not written/);
});

test('an OVF contains cloud-init data of Secrets only if it is included, and its import never uses their names', () => {
  const machine = describeVm(aSeededVm({ secretRef: { name: 'theirs' } }), record, claims);
  assert.deepEqual(machine.disks.find(({ name }) => name === 'seed')?.cloudInit, { userData: { secret: 'theirs' } });
  const bare = toManifests(readOvf(writeOvf(machine)), options);
  assert.deepEqual(seedOf(bare), { name: 'seed', cloudInitNoCloud: { secretRef: { name: 'db-seed-cloudinit' } } });
  assert.deepEqual(bare.secrets, []);
  assert.match(bare.notes.join('\n'), /in the Secret theirs; create the Secret db-seed-cloudinit/);
  const mapped = toManifests(machine, { ...options, secretNames: new Map([['seed', 'mine']]) });
  assert.deepEqual(seedOf(mapped), { name: 'seed', cloudInitNoCloud: { secretRef: { name: 'mine' } } });
  assert.doesNotMatch(mapped.notes.join('\n'), /Secret/);

  const secret = {
    data: { userData: base64('#cloud-config'), networkdata: base64('version: 2') },
  } as unknown as Secret;
  const disks = machine.disks.map((disk) =>
    disk.cloudInit === undefined
      ? disk
      : { ...disk, cloudInit: includeSecrets(disk.cloudInit, new Map([['theirs', secret]])) },
  );
  const whole = toManifests(readOvf(writeOvf({ ...machine, disks })), options);
  const name = 'db-seed-cloudinit';
  assert.deepEqual(seedOf(whole), {
    name: 'seed',
    cloudInitNoCloud: { secretRef: { name }, networkDataSecretRef: { name } },
  });
  assert.deepEqual(
    whole.secrets.map(({ metadata, data }) => [metadata, data]),
    [
      [
        { name, namespace: 'golden' },
        { userdata: base64('#cloud-config'), networkdata: base64('version: 2') },
      ],
    ],
  );
});

test('refuses invalid cloud-init data, labels and host names', () => {
  const text = writeOvf(describeVm(aSeededVm({ userData: 'abc' }), record, claims));
  const cases: Record<string, [string, string, RegExp]> = {
    base64: ['>YWJj<', '>YWJ!j<', /its cloud-init data is not valid base64/],
    disk: ['selfsame:disk="seed"', 'selfsame:disk="sead"', /cloud-init data for the unknown disk "sead"/],
    'a disk with a file': ['selfsame:disk="seed"', 'selfsame:disk="root"', /has cloud-init data, and also a file/],
    label: ['selfsame:value="gold"', 'selfsame:value="g o"', /"tier=g o" is not a valid label/],
    hostname: ['selfsame:hostname="ledger"', 'selfsame:hostname="-"', /"-" is not a valid host name/],
  };
  for (const [what, [from, to, want]] of Object.entries(cases)) {
    assert.ok(text.includes(from), what);
    assert.throws(() => readOvf(text.replace(from, to)), want, what);
  }
});

test('a VM that is exported as OVF and imported again is the selfsame machine', () => {
  const out = describeVm(richVm(), record, claims);
  const { vm, claims: made } = toManifests(readOvf(writeOvf(out)), options);
  assert.deepEqual(validateVirtualMachine(vm, { configuration: LUNS_ALLOWED }), []);
  assert.equal(vm.spec.runStrategy, 'Halted');
  const { domain } = vm.spec.template.spec ?? { domain: {} };
  assert.deepEqual(domain.machine, { type: 'pc-q35-7.2' });
  assert.deepEqual(domain.firmware, { uuid: out.uuid, serial: 'A-1', bootloader: { efi: { secureBoot: true } } });
  assert.deepEqual(domain.devices?.interfaces, [
    { name: 'default', model: 'virtio', macAddress: '02:00:00:00:00:01', bootOrder: 2, masquerade: {} },
    { name: 'lan', model: 'e1000e', macAddress: '02:00:00:00:00:07', state: 'absent', bridge: {} },
  ]);
  assert.deepEqual(
    domain.devices?.disks?.map(({ name }) => name),
    ['root', 'logs', 'seed', 'san'],
  );
  assert.deepEqual(
    [
      domain.devices?.tpm,
      domain.devices?.rng,
      domain.devices?.autoattachMemBalloon,
      domain.devices?.autoattachSerialConsole,
    ],
    [{}, {}, undefined, undefined],
  );
  assert.deepEqual(
    made.map(({ metadata, spec }) => [metadata.name, spec.resources?.requests?.['storage']]),
    [
      ['db-root', String(2 * GIB)],
      ['db-logs', String(3 * GIB)],
    ],
  );
  const imported = importedInto(vm);
  assert.ok('devices' in imported);
  assert.equal(imported.machine, 'pc-q35-7.2');
  assert.equal(imported.from, 'OVF of Selfsame 1');
  const rows = new Map(imported.devices.map((row) => [row.id, row]));
  for (const row of out.rows) assert.deepEqual(rows.get(row.id)?.address, row.address, row.id);
});

const files: Record<string, { machine: () => MachineDescription; networks?: ReadonlyMap<string, string> }> = {
  'of oVirt 4.1': { machine: () => readOvf(ovirtOvf()) },
  'of oVirt 3.0': { machine: () => readOvf(ovirtOvf({ version: '3.0.0.0' })) },
  'of another product': { machine: () => readOvf(PLAIN_OVF), networks: new Map([['VM Network', 'br0']]) },
};

for (const [name, { machine, networks }] of Object.entries(files)) {
  test(`admission accepts the import of an OVF ${name}`, () => {
    const { vm } = toManifests(machine(), { ...options, networks });
    assert.deepEqual(validateVirtualMachine(vm, { configuration: i440fx }), []);
    assert.ok('devices' in importedInto(vm));
  });
}

test('replaces machine types of other vendors with the newest of their chipset, and records the original', () => {
  const machine = readOvf(ovirtOvf({ settings: '<CustomEmulatedMachine>pc-i440fx-rhel7.6.0</CustomEmulatedMachine>' }));
  const { vm, notes } = toManifests(machine, options);
  assert.deepEqual(vm.spec.template.spec?.domain.machine, { type: 'pc' });
  assert.deepEqual((importedInto(vm) as { machine?: string }).machine, 'pc-i440fx-rhel7.6.0');
  assert.match(notes.join('\n'), /pc-i440fx-rhel7\.6\.0 is not supported/);
  const offered = toManifests(machine, { ...options, offeredTypes: new Set(['pc-i440fx-rhel7.6.0']) });
  assert.deepEqual(
    offered.vm.spec.template.spec?.domain.machine,
    { type: 'pc-i440fx-rhel7.6.0' },
    'unless a node has it',
  );
  assert.doesNotMatch(offered.notes.join('\n'), /machine type/);
});

test('keeps versioned machine types of QEMU', () => {
  for (const type of ['pc-q35-7.2', 'pc-q35-4.0.1', 'pc-i440fx-10.0']) {
    const machine = readOvf(ovirtOvf({ settings: `<CustomEmulatedMachine>${type}</CustomEmulatedMachine>` }));
    assert.deepEqual(toManifests(machine, options).vm.spec.template.spec?.domain.machine, { type });
  }
});

test('uses existing claims, which disks of unknown size require', () => {
  const machine = readLibvirt(writeLibvirt(describeVm(richVm(), record, claims)).xml);
  assert.throws(
    () => toManifests(machine, options),
    (error: unknown) => error instanceof FileFormatError && /the size of the disk "root"/.test(error.message),
  );
  const { vm, claims: made } = toManifests(machine, { ...options, claimNames: new Map([['root', 'mine']]) });
  assert.deepEqual(made, []);
  assert.deepEqual(vm.spec.template.spec?.volumes?.[0], { name: 'root', persistentVolumeClaim: { claimName: 'mine' } });
});

test('refuses two interfaces on the pod network and invalid names of definitions', () => {
  const machine = readOvf(PLAIN_OVF);
  assert.throws(
    () => toManifests(machine, options),
    /"VM Network" is not a valid name of a NetworkAttachmentDefinition; name one, or pod/,
  );
  assert.throws(
    () => toManifests(machine, { ...options, networks: new Map([['VM Network', 'pod']]) }),
    /only one interface/,
  );
});

test('a bridge of libvirt becomes a network whose definition must exist', () => {
  const vm = richVm();
  const { networks, domain } = vm.spec.template.spec!;
  networks![1]!.multus!.networkName = 'default/br1';
  delete domain.devices!.interfaces![1]!.state;
  const { xml } = writeLibvirt(describeVm(vm, record, claims));
  assert.match(xml, /<source bridge=["']br1["'] ?\/>/);
  const { vm: imported, notes } = toManifests(readLibvirt(xml), {
    ...options,
    claimNames: new Map([['root', 'mine']]),
  });
  assert.deepEqual(imported.spec.template.spec?.networks?.[1], { name: 'lan', multus: { networkName: 'br1' } });
  assert.match(notes.join('\n'), /network br1: before the VM starts, a cluster administrator must create the Network/);
});

test('an unplugged device loses an address that another device has', () => {
  const machine = describeVm(richVm(), record, claims);
  const rows = machine.rows.map((row) => (row.id === 'nic-lan' ? { ...row, address: at('0x02') } : row));
  const { vm, notes } = toManifests({ ...machine, rows }, options);
  const imported = importedInto(vm);
  assert.ok('devices' in imported);
  assert.equal(imported.devices.find(({ id }) => id === 'nic-lan')?.address, undefined);
  assert.match(notes.join('\n'), /nic-lan is not plugged/);
});

test('exports and imports hardware of the spec, also if the VM never ran', () => {
  const devices = {
    autoattachGraphicsDevice: true,
    video: { type: 'virtio' as const },
    sound: { name: 'speaker', model: 'ac97' as const },
    watchdog: { name: 'dog', i6300esb: { action: 'poweroff' as const } },
    inputs: [{ name: 'pen', type: 'tablet' as const, bus: 'virtio' as const }],
    clientPassthrough: {},
  };
  const vm = aVm({
    spec: { template: { spec: { domain: { devices: { interfaces: null, ...devices } }, networks: null } } },
  });
  const machine = describeVm(vm, undefined, claims);
  const { vm: back } = toManifests(readOvf(writeOvf(machine)), options);
  const { autoattachGraphicsDevice, video, sound, watchdog, inputs, clientPassthrough } =
    back.spec.template.spec?.domain.devices ?? {};
  assert.deepEqual({ autoattachGraphicsDevice, video, sound, watchdog, inputs, clientPassthrough }, devices);
});

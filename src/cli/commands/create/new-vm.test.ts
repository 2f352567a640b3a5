import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildVmManifest, type NewVmOptions } from '#cli/commands/create/new-vm.ts';

type Flags = Partial<NewVmOptions['volumes'] & NewVmOptions['cloudInit'] & Omit<NewVmOptions, 'volumes' | 'cloudInit'>>;

function buildVm(flags: Flags = {}) {
  const { containerDisks = [], claims = [], imports = [], sysprep, name = 'db', runStrategy = 'Always' } = flags;
  const { memory = '512Mi', terminationGracePeriod = 180, kind, userData, networkData, user, password } = flags;
  return buildVmManifest({
    ...{
      name,
      runStrategy,
      memory,
      terminationGracePeriod,
      firmware: flags.firmware ?? 'bios',
      tpm: flags.tpm ?? false,
    },
    volumes: { containerDisks, claims, imports, sysprep },
    cloudInit: {
      kind,
      userData,
      networkData,
      user,
      password,
      sshKeys: flags.sshKeys ?? [],
      manageSsh: flags.manageSsh ?? false,
    },
  });
}
const specOf = (flags: Flags) =>
  (buildVm(flags).objects.at(-1) as { spec: { template: { spec: Record<string, unknown> } } }).spec.template.spec;

test('the smallest VM has memory and runs', () => {
  assert.deepEqual(buildVm().objects, [
    {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name: 'db' },
      spec: {
        runStrategy: 'Always',
        template: {
          spec: { domain: { devices: {}, memory: { guest: '512Mi' } }, terminationGracePeriodSeconds: 180 },
        },
      },
    },
  ]);
});

const firmwares: Record<string, { flags: Flags; want: object }> = {
  'UEFI without Secure Boot keeps its variables': {
    flags: { firmware: 'efi' },
    want: { devices: {}, firmware: { bootloader: { efi: { secureBoot: false, persistent: true } } } },
  },
  'Secure Boot brings the System Management Mode that it needs': {
    flags: { firmware: 'secure-boot' },
    want: {
      devices: {},
      firmware: { bootloader: { efi: { secureBoot: true, persistent: true } } },
      features: { smm: { enabled: true } },
    },
  },
  'a TPM keeps its state': { flags: { tpm: true }, want: { devices: { tpm: { persistent: true } } } },
};
for (const [name, { flags, want }] of Object.entries(firmwares)) {
  test(name, () => assert.deepEqual(specOf(flags)['domain'], { memory: { guest: '512Mi' }, ...want }));
}

test('volumes have disks with their names and boot orders', () => {
  const { objects } = buildVm({
    claims: ['src:root,bootorder:2'],
    imports: ['type:blank,size:1Gi,name:data,bootorder:1'],
  });
  assert.deepEqual(objects[0], {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'db-data' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  });
  const { domain, volumes } = specOf({
    claims: ['src:root,bootorder:2'],
    imports: ['type:blank,size:1Gi,name:data,bootorder:1'],
  });
  assert.deepEqual((domain as { devices: unknown }).devices, {
    disks: [
      { name: 'root', disk: { bus: 'virtio' }, bootOrder: 2 },
      { name: 'data', disk: { bus: 'virtio' }, bootOrder: 1 },
    ],
  });
  assert.deepEqual(volumes, [
    { name: 'root', persistentVolumeClaim: { claimName: 'root' } },
    { name: 'data', persistentVolumeClaim: { claimName: 'db-data' } },
  ]);
});

test('a claim can be created from a snapshot', () => {
  const [claim] = buildVm({ imports: ['type:snapshot,src:before,size:2Gi,storageclass:fast'] }).objects;
  assert.deepEqual((claim as { spec: unknown }).spec, {
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'fast',
    dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'before' },
    resources: { requests: { storage: '2Gi' } },
  });
});

const userDatas: Record<string, { flags: Flags; want: string }> = {
  'a user with a key': {
    flags: { user: 'joe', sshKeys: ['ssh-ed25519 AAAA joe'] },
    want: '#cloud-config\nuser: joe\nssh_authorized_keys:\n  - ssh-ed25519 AAAA joe\n',
  },
  'a password that YAML 1.1 would take for true': {
    flags: { password: 'yes' },
    want: '#cloud-config\npassword: "yes"\nchpasswd:\n  expire: false\n',
  },
  'the guest agent manages keys': {
    flags: { manageSsh: true },
    want: '#cloud-config\nruncmd:\n  - - setsebool\n    - -P\n    - virt_qemu_ga_manage_ssh\n    - "on"\n',
  },
};
for (const [title, { flags, want }] of Object.entries(userDatas)) {
  test(`cloud-init: ${title}`, () => {
    const volumes = specOf(flags)['volumes'] as { name: string; cloudInitNoCloud: { userData: string } }[];
    assert.deepEqual(volumes, [{ name: 'cloudinitdisk', cloudInitNoCloud: { userData: want } }]);
  });
}

test('uses cloud-init data of the user unchanged', () => {
  const volumes = specOf({ userData: 'YQ==', networkData: 'Yg==', kind: 'ConfigDrive' })['volumes'];
  const content = { userDataBase64: 'YQ==', networkDataBase64: 'Yg==' };
  assert.deepEqual(volumes, [{ name: 'cloudinitdisk', cloudInitConfigDrive: content }]);
});

test('attaches sysprep as a CD', () => {
  const { volumes, domain } = specOf({ sysprep: 'src:unattend,type:Secret' });
  assert.deepEqual(volumes, [{ name: 'sysprepdisk', sysprep: { secret: { name: 'unattend' } } }]);
  assert.deepEqual((domain as { devices: unknown }).devices, {
    disks: [{ name: 'sysprepdisk', cdrom: { bus: 'sata' } }],
  });
});

test('creates a container disk, with a note that it is not supported', () => {
  const { notes } = buildVm({ containerDisks: ['src:quay.io/a/b:c', 'src:quay.io/a/b:d,name:two'] });
  assert.equal(notes.length, 1);
  const { volumes } = specOf({ containerDisks: ['src:quay.io/a/b:c', 'src:quay.io/a/b:d,name:two'] });
  assert.deepEqual(volumes, [
    { name: 'db-containerdisk-0', containerDisk: { image: 'quay.io/a/b:c' } },
    { name: 'two', containerDisk: { image: 'quay.io/a/b:d' } },
  ]);
});

const refused: Record<string, { flags: Flags; message: RegExp }> = {
  'an invalid name': { flags: { name: 'My VM' }, message: /^failed to parse "--name" flag: / },
  'an unknown strategy': {
    flags: { runStrategy: 'Alway' },
    message: /invalid RunStrategy "Alway", supported values are: /,
  },
  'an invalid memory size': {
    flags: { memory: 'much' },
    message: /^failed to parse "--memory" flag: quantities must match/,
  },
  'a word without a colon': {
    flags: { claims: ['root'] },
    message: /"--volume-pvc" flag: params need to have at least one colon: root/,
  },
  'a claim without a source': { flags: { claims: ['name:a'] }, message: /src must be specified/ },
  'a claim of another namespace': {
    flags: { claims: ['src:a/b'] },
    message: /not allowed to specify namespace of PVC 'a\/b'/,
  },
  'an unknown parameter': {
    flags: { claims: ['src:a,colour:red'] },
    message: /unknown param\(s\): colour:red; supported are src, /,
  },
  'a boot order of 0': { flags: { claims: ['src:a,bootorder:0'] }, message: /bootorder must be greater than 0/ },
  'a boot order twice': {
    flags: { claims: ['src:a,bootorder:1', 'src:b,bootorder:1'] },
    message: /bootorder 1 was specified multiple times/,
  },
  'a name twice': { flags: { claims: ['src:a', 'src:a'] }, message: /there is already a Volume with name 'a'/ },
  'an import that requires CDI': {
    flags: { imports: ['type:http,url:https://a'] },
    message: /type http is not supported without CDI; use virtctl image-upload/,
  },
  'an import without a type': { flags: { imports: ['size:1Gi'] }, message: /type must be specified/ },
  'a blank volume without a size': { flags: { imports: ['type:blank'] }, message: /size must be specified/ },
  'data that is not base64': {
    flags: { userData: '#cloud' },
    message: /"--cloud-init-user-data" flag: it is not base64/,
  },
  'data of both kinds': { flags: { userData: 'YQ==', user: 'joe' }, message: /it cannot be combined with --user/ },
  'data with cloud-init none': { flags: { kind: 'none', user: 'joe' }, message: /none cannot be combined with/ },
  'an unknown source of cloud-init': {
    flags: { kind: 'floppy', user: 'joe' },
    message: /invalid cloud-init data source type "floppy"/,
  },
};
for (const [title, { flags, message }] of Object.entries(refused)) {
  test(`refuses ${title}`, () => assert.throws(() => buildVm(flags), { name: 'UsageError', message }));
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UPLOAD_ANNOTATION } from '#api/storage/disk-stream.ts';
import { STATE_LABEL, STATE_VOLUME } from '#api/storage/persistent-state.ts';
import { parsePairs, planImport, type ImportOptions } from '#cli/transfer/import-plan.ts';
import type { DescribedDisk, MachineDescription } from '#formats/machine.ts';

const aDisk = (name: string, more: Partial<DescribedDisk> = {}): DescribedDisk => ({
  id: `disk-${name}`,
  name,
  media: 'disk',
  bus: 'virtio',
  file: `${name}.img`,
  sizeBytes: 1024 ** 3,
  format: 'raw',
  readonly: false,
  plugged: true,
  optional: false,
  ...more,
});
const aMachine = (disks: DescribedDisk[], more: Partial<MachineDescription> = {}): MachineDescription => ({
  name: 'db',
  uuid: '5a9fc181-957e-5c32-9e5a-2de5e9673531',
  serial: 's-1',
  machineType: 'pc-q35-7.2',
  chipset: 'q35',
  cpu: { sockets: 1, cores: 1, threads: 1 },
  memoryMib: 256,
  firmware: 'bios',
  tpm: false,
  disks,
  nics: [{ id: 'nic-a', name: 'a', model: 'virtio', mac: '02:00:00:00:00:01', plugged: true }],
  rows: disks.map(({ id, name }) => ({ id, name, type: 'disk', device: 'disk' })),
  source: { format: 'ovf' },
  notes: ['a note of the file'],
  ...more,
});
const options = (more: Partial<ImportOptions> = {}): ImportOptions => ({
  namespace: 'lab',
  claims: new Map(),
  networks: new Map(),
  newIdentity: false,
  ...more,
});

test('creates a claim for each disk, which waits for its file if there is one', () => {
  const plan = planImport(aMachine([aDisk('root'), aDisk('scratch', { file: undefined })]), options(), {
    canUpload: true,
  });
  assert.ok(!('errors' in plan));
  assert.deepEqual(
    plan.claims.map(({ metadata }) => [metadata.name, metadata.namespace, metadata.annotations]),
    [
      ['db-root', 'lab', { [UPLOAD_ANNOTATION]: 'true' }],
      ['db-scratch', 'lab', undefined],
    ],
  );
  assert.deepEqual(plan.uploads, [{ volume: 'root', claim: 'db-root', file: 'root.img', format: 'raw' }]);
  assert.deepEqual([plan.vm.metadata.name, plan.vm.spec.runStrategy], ['db', 'Halted']);
  assert.ok(plan.notes.includes('a note of the file'));
});

test('needs neither claim nor file for a disk whose content is in a claim', () => {
  const given = options({ name: 'copy', claims: new Map([['root', 'mine']]) });
  const plan = planImport(aMachine([aDisk('root', { format: 'vmdk' })]), given, { canUpload: false });
  assert.ok(!('errors' in plan));
  assert.deepEqual([plan.claims, plan.uploads], [[], []]);
  assert.deepEqual(plan.vm.spec.template.spec?.volumes, [
    { name: 'root', persistentVolumeClaim: { claimName: 'mine' } },
  ]);
});

test('imports the persistent state into its own claim, but not with a new identity', () => {
  const state = { tpm: true, efi: false, file: 'db-state.bin', sizeBytes: 7 };
  const planned = (more: Partial<ImportOptions>) => {
    const plan = planImport(aMachine([], { tpm: true, state }), options(more), { canUpload: true });
    assert.ok(!('errors' in plan));
    return {
      uploads: plan.uploads.map(({ volume, file }) => [volume, file]),
      claims: plan.claims.map(({ metadata }) => [
        metadata.labels?.[STATE_LABEL],
        metadata.annotations?.[UPLOAD_ANNOTATION],
      ]),
      noteCount: plan.notes.filter((note) => note.includes('persistent state')).length,
      tpm: plan.vm.spec.template.spec?.domain.devices?.tpm,
    };
  };
  const taken = { uploads: [[STATE_VOLUME, 'db-state.bin']], noteCount: 0, tpm: { persistent: true } };
  assert.deepEqual(planned({}), { ...taken, claims: [['db', 'true']] });
  assert.deepEqual(planned({ name: 'copy', newIdentity: true, keepState: true }), {
    ...taken,
    claims: [['copy', 'true']],
  });
  const left = planned({ newIdentity: true });
  assert.deepEqual([left.uploads, left.claims, left.tpm], [[], [], { persistent: true }]);
  assert.equal(left.noteCount, 1, 'one statement about the state');
});

test('the state claim has the class for state unless a class is given, and the modes of that class', () => {
  const state = { tpm: true, efi: false, file: 'db-state.bin', sizeBytes: 7 };
  const specOf = (more: Partial<ImportOptions>) => {
    const plan = planImport(aMachine([], { tpm: true, state }), options(more), { canUpload: true });
    assert.ok(!('errors' in plan));
    return plan.claims[0]?.spec ?? {};
  };
  const classOf = (more: Partial<ImportOptions>) => specOf(more).storageClassName;
  const stateModes = { volumeMode: 'Block', accessMode: 'ReadWriteMany' } as const;
  const { volumeMode, accessModes } = specOf({ stateStorageClass: 'fast', stateModes });
  assert.deepEqual([volumeMode, accessModes], ['Block', ['ReadWriteMany']]);
  assert.deepEqual(specOf({}).accessModes, ['ReadWriteOnce']);
  assert.equal(classOf({}), undefined);
  assert.equal(classOf({ stateStorageClass: 'fast' }), 'fast');
  assert.equal(classOf({ stateStorageClass: 'fast', storageClass: 'mine' }), 'mine');
});

test('a new identity keeps the device addresses', () => {
  const of = (newIdentity: boolean) => {
    const plan = planImport(aMachine([]), options({ newIdentity }), { canUpload: true });
    assert.ok(!('errors' in plan));
    const { firmware, devices } = plan.vm.spec.template.spec?.domain ?? {};
    return [firmware?.uuid, firmware?.serial, devices?.interfaces?.[0]?.macAddress];
  };
  assert.deepEqual(of(false), ['5a9fc181-957e-5c32-9e5a-2de5e9673531', 's-1', '02:00:00:00:00:01']);
  assert.deepEqual(of(true), [undefined, undefined, undefined]);
});

const refused: Record<string, { machine: MachineDescription; given?: Partial<ImportOptions>; want: RegExp[] }> = {
  'a format that nodes do not read': {
    machine: aMachine([aDisk('root', { format: 'vmdk' })]),
    want: [/the disk root is in the format vmdk, which is not supported; convert it/],
  },
  'an invalid name': {
    machine: aMachine([]),
    given: { name: 'Not A Name' },
    want: [/the name "Not A Name" is not valid for a VM/],
  },
  'a claim for an unknown disk, together with errors of the format': {
    machine: aMachine([aDisk('root', { sizeBytes: undefined })]),
    given: { claims: new Map([['swap', 'mine']]) },
    want: [/--claim names the unknown disk "swap"; the disks are root/, /does not contain the size of the disk "root"/],
  },
};
for (const [title, { machine, given, want }] of Object.entries(refused)) {
  test(`refuses ${title}`, () => {
    const plan = planImport(machine, options(given), { canUpload: true });
    assert.ok('errors' in plan);
    assert.equal(plan.errors.length, want.length, plan.errors.join('; '));
    for (const [i, pattern] of want.entries()) assert.match(plan.errors[i] ?? '', pattern);
  });
}

test('requires a claim for every disk with content if there are no files', () => {
  const disks = [aDisk('vda', { file: '/images/a.img' }), aDisk('vdb', { file: '/images/b.img' })];
  const plan = planImport(aMachine(disks), options(), { canUpload: false });
  assert.ok('errors' in plan);
  assert.deepEqual(plan.errors, [
    'the disk vda is "/images/a.img"; name the claim with its content with --claim vda=CLAIM',
    'the disk vdb is "/images/b.img"; name the claim with its content with --claim vdb=CLAIM',
  ]);
});

const pairs: Record<string, { texts: string[]; want: [string, string][] | RegExp }> = {
  'no pairs': { texts: [], want: [] },
  'several, with further equals signs in the value': {
    texts: ['root=db-root', 'a=b=c'],
    want: [
      ['root', 'db-root'],
      ['a', 'b=c'],
    ],
  },
  'no equals sign': { texts: ['root'], want: /invalid argument .*root.* flag: expected NAME=VALUE/ },
  'no name': { texts: ['=x'], want: /expected NAME=VALUE/ },
  'no value': { texts: ['x='], want: /expected NAME=VALUE/ },
  'a repeated name': { texts: ['a=b', 'a=c'], want: /--claim names .*a.* twice/ },
};
for (const [title, { texts, want }] of Object.entries(pairs)) {
  test(`reads pairs: ${title}`, () => {
    const read = parsePairs('claim', texts);
    if (want instanceof RegExp) assert.match(JSON.stringify(read), want);
    else assert.deepEqual(typeof read === 'string' ? read : [...read], want);
  });
}

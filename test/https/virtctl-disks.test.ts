/** virtctl export and import with disks: the real API, a real node endpoint and real files, without guests. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { PROTECTION_LABEL } from '#api/protection/delete-protection.ts';
import { UPLOAD_ANNOTATION } from '#api/storage/disk-stream.ts';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import { STATE_LABEL } from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { stateClaimFor } from '#formats/vm/to-manifests.ts';
import { PERSISTENT_VOLUME_CLAIMS, SECRETS } from '#kube/core-kinds.ts';
import type { ResourceType } from '#kube/meta.ts';
import { buildCloudInitFiles } from '#node/volumes/local/cloud-init/cloud-init.ts';
import type { DiskAccess } from '#node/endpoint/endpoint-agent.ts';
import type { DiskUpload } from '#node/volumes/volumes-port.ts';
import type { SubresourcesScene } from '#test/scenarios/subresources-scene.ts';
import { DiskScene } from '#test/support/disk-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

const MIB = 1024 * 1024;
const UUID = '5a9fc181-957e-5c32-9e5a-2de5e9673531';

let disks: DiskScene;
let scene: SubresourcesScene;
let dir: string;

before(async () => {
  disks = await DiskScene.start();
  ({ scene, dir } = disks);
});
after(async () => await disks?.stop());

const create = (type: ResourceType, object: Loose) => disks.create(type, object);
const aVolumeFor = (claim: string, storage?: string) => disks.createVolumeFor(claim, storage);
const aClaim = (name: string, marks?: Loose, storage?: string) => disks.createClaim(name, marks, storage);
const imageOf = (claim: string) => disks.imageOf(claim);
/** Fails after the first bytes. */
const failWith =
  (why: string) =>
  (upload: DiskUpload): DiskUpload => ({
    ...upload,
    async receive(_, chunks) {
      for await (const chunk of chunks) if (chunk.length > 0) throw new Error(why);
    },
  });
const pci = (bus: string) => ({ type: 'pci', domain: '0x0000', bus, slot: '0x00', function: '0x0' });

/** Makes a stopped VM that has run, with a small disk. */
async function aStoppedVm(name: string, storage?: string): Promise<void> {
  await aClaim(`${name}-root`, {}, storage);
  await scene.createVm(name, {
    runStrategy: 'Halted',
    template: {
      spec: {
        domain: {
          machine: { type: 'q35' },
          memory: { guest: '256Mi' },
          firmware: { uuid: UUID, serial: 'serial-1' },
          devices: {
            disks: [{ name: 'root', disk: { bus: 'virtio' }, bootOrder: 1 }],
            interfaces: [{ name: 'default', masquerade: {} }],
          },
        },
        networks: [{ name: 'default', pod: {} }],
        volumes: [{ name: 'root', persistentVolumeClaim: { claimName: `${name}-root` } }],
      },
    },
  });
  const { uid } = (await scene.readVm(name)).metadata;
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name, uid, controller: true };
  const metadata = { namespace: 'default', name, ownerReferences: [owner] };
  const spec = { firmware: { uuid: UUID }, interfaces: [{ name: 'default', macAddress: '02:00:00:00:00:17' }] };
  await create(VIRTUAL_MACHINE_IDENTITIES, { metadata, spec });
  await scene.patchStatus(VIRTUAL_MACHINE_IDENTITIES, name, {
    machine: { type: 'pc-q35-7.2' },
    learnedAt: '2026-01-01T00:00:00Z',
    devices: [
      { id: 'nic-default', type: 'interface', device: 'virtio', name: 'default', managed: true, address: pci('0x03') },
      {
        id: 'disk-root',
        type: 'disk',
        device: 'disk',
        name: 'root',
        managed: true,
        address: pci('0x05'),
        bootOrder: 1,
      },
    ],
  });
}

async function putContent(claim: string, text: string): Promise<void> {
  // Opening the disk creates its file.
  const door = (scene.node as { disks?: DiskAccess }).disks;
  await (await door?.open('default', claim))?.close();
  writeFileSync(imageOf(claim), text, { flag: 'r+' });
}

suite('virtctl with disks', () => {
  test('exports a VM with its disk, and imports it with the same identity', async () => {
    await aStoppedVm('db');
    await putContent('db-root', 'the ledger');
    const ova = join(dir, 'db.ova');
    const exported = await scene.virtctl('export', 'ovf', 'db', '--ova', ova);
    assert.equal(exported.code, 0, exported.err);
    assert.match(
      exported.err,
      /^disk root: 4\.0 MiB\ndisk root: done, .*\/s\nwriting root\.qcow2: .*iB\nwriting root\.qcow2: done, .*\/s\nVM db was exported to .*db\.ova\n$/,
    );
    assert.deepEqual(
      readdirSync(dir).filter((name) => name.startsWith('db.')),
      ['db.ova'],
    );
    assert.match(
      (await scene.virtctl('export', 'ovf', 'db', '--ova', ova)).err,
      /it already exists; use --force to overwrite it/,
    );

    await aVolumeFor('copy-root');
    const imported = await scene.virtctl('import', 'ovf', ova, '--name', 'copy', '--storage-class', 'manual');
    assert.equal(imported.code, 0, imported.err);
    assert.equal(imported.out, `VM copy was imported from ${ova}\n`);
    assert.ok(readFileSync(imageOf('copy-root')).equals(readFileSync(imageOf('db-root'))));
    assert.equal(readFileSync(imageOf('copy-root')).toString('latin1', 0, 10), 'the ledger');

    const vm = await scene.readVm('copy');
    const { domain } = vm.spec.template.spec;
    assert.equal(vm.spec.runStrategy, 'Halted');
    assert.deepEqual([domain.firmware.uuid, domain.firmware.serial], [UUID, 'serial-1']);
    assert.equal(domain.devices.interfaces[0].macAddress, '02:00:00:00:00:17');
    const rows = JSON.parse(vm.metadata.annotations[IMPORTED_DEVICES_ANNOTATION]);
    assert.equal(rows.machine, 'pc-q35-7.2');
    const places = Object.fromEntries(rows.devices.map(({ id, address }: Loose) => [id, address?.bus]));
    assert.deepEqual([places['nic-default'], places['disk-root']], ['0x03', '0x05']);
    const claim = await scene.admin.get(PERSISTENT_VOLUME_CLAIMS, { namespace: 'default', name: 'copy-root' });
    assert.equal(claim.metadata.annotations?.[UPLOAD_ANNOTATION], undefined);
  });

  test('exports disks as compressed qcow2 that QEMU accepts, or as raw on request, and imports both', async () => {
    const out = join(dir, 'extracted');
    mkdirSync(out);
    const extract = (ova: string, name: string) => execFileSync('tar', ['-xf', ova, '-C', out, name]);
    extract(join(dir, 'db.ova'), 'db.ovf');
    extract(join(dir, 'db.ova'), 'root.qcow2');
    const ovf = readFileSync(join(out, 'db.ovf'), 'utf8');
    assert.match(
      ovf,
      /ovf:format="http:\/\/www\.gnome\.org\/~markmc\/qcow-image-format\.html" ovf:volume-format="COW"/,
    );
    const image = join(out, 'root.qcow2');
    assert.ok(statSync(image).size < MIB, 'holes take no space');
    assert.match(String(execFileSync('qemu-img', ['check', '-f', 'qcow2', image])), /No errors were found/);
    const compared = execFileSync('qemu-img', ['compare', '-f', 'qcow2', '-F', 'raw', image, imageOf('db-root')]);
    assert.match(String(compared), /Images are identical/);

    const raw = join(dir, 'raw.ova');
    const exported = await scene.virtctl('export', 'ovf', 'db', '--ova', raw, '--disk-format', 'raw');
    assert.equal(exported.code, 0, exported.err);
    extract(raw, 'root.img');
    assert.ok(readFileSync(join(out, 'root.img')).equals(readFileSync(imageOf('db-root'))));
    await aVolumeFor('plain-root');
    const imported = await scene.virtctl('import', 'ovf', raw, '--name', 'plain', '--storage-class', 'manual');
    assert.equal(imported.code, 0, imported.err);
    assert.ok(readFileSync(imageOf('plain-root')).equals(readFileSync(imageOf('db-root'))));
    const vmdk = await scene.virtctl('export', 'ovf', 'db', '--ova', raw, '--disk-format', 'vmdk');
    assert.match(vmdk.err, /must be one of qcow2, raw/);
  });

  test('does not begin an export without enough free space', async () => {
    await aStoppedVm('vast', '4Ti');
    const ova = join(dir, 'vast.ova');
    const { code, err } = await scene.virtctl('export', 'ovf', 'vast', '--ova', ova, '--disk-format', 'raw');
    assert.equal(code, 1);
    assert.match(
      err,
      /Cannot write .*vast\.ova: it needs up to 4\.0 TiB, and the file system of .* has .* left; free space, or choose/,
    );
    assert.ok(!readdirSync(dir).some((name) => name.startsWith('vast')));
    const nowhere = await scene.virtctl('export', 'ovf', 'db', '--ova', join(dir, 'missing', 'db.ova'));
    assert.match(nowhere.err, /Cannot write .*missing\/db\.ova: ENOENT/);
  });

  test('exports and imports the persistent state', async () => {
    await aStoppedVm('keeper');
    const body = { spec: { template: { spec: { domain: { devices: { tpm: { persistent: true } } } } } } };
    await scene.admin.patch(VIRTUAL_MACHINES, { namespace: 'default', name: 'keeper' }, { type: 'merge', body });
    const [ova, early] = [join(dir, 'keeper.ova'), join(dir, 'early.ova')];
    const none = await scene.virtctl('export', 'ovf', 'keeper', '--ova', early);
    assert.equal(none.code, 0, none.err);
    assert.match(none.err, /Note: the VM has no persistent TPM and EFI state yet/);

    const { uid } = (await scene.readVm('keeper')).metadata;
    await aClaim('the-state', {
      labels: { [STATE_LABEL]: 'keeper' },
      ownerReferences: [
        { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'keeper', uid, controller: true },
      ],
    });
    const tpm = join(dir, 'volumes', 'pv-the-state', 'state', 'tpm');
    mkdirSync(tpm, { recursive: true });
    writeFileSync(join(tpm, 'tpm2-00.permall'), 'the keys');
    const exported = await scene.virtctl('export', 'ovf', 'keeper', '--ova', ova);
    assert.equal(exported.code, 0, exported.err);
    assert.match(exported.err, /persistent state: done/);

    const claim = stateClaimFor('heir');
    await aVolumeFor('heir-root');
    await aVolumeFor(claim, '10Mi');
    const imported = await scene.virtctl('import', 'ovf', ova, '--name', 'heir', '--storage-class', 'manual');
    assert.equal(imported.code, 0, imported.err);
    const heir = await scene.readVm('heir');
    assert.deepEqual(heir.spec.template.spec.domain.devices.tpm, { persistent: true });
    const { metadata } = await scene.admin.get(PERSISTENT_VOLUME_CLAIMS, { namespace: 'default', name: claim });
    assert.deepEqual([metadata.labels?.[STATE_LABEL], metadata.annotations?.[UPLOAD_ANNOTATION]], ['heir', undefined]);
    assert.equal(metadata.ownerReferences?.[0]?.uid, heir.metadata.uid);
    const brought = join(dir, 'volumes', `pv-${claim}`, 'state', 'tpm', 'tpm2-00.permall');
    assert.equal(readFileSync(brought, 'utf8'), 'the keys');
  });

  test('exports and imports cloud-init data and labels, with Secrets only on request', async () => {
    await aStoppedVm('seeded');
    const secret = { userdata: Buffer.from('#cloud-config').toString('base64') };
    await create(SECRETS, { metadata: { namespace: 'default', name: 'keys' }, data: secret });
    const { spec } = (await scene.readVm('seeded')).spec.template;
    const seed = { name: 'seed', cloudInitNoCloud: { secretRef: { name: 'keys' }, networkData: 'version: 2' } };
    const devices = { disks: [...spec.domain.devices.disks, { name: 'seed', cdrom: { bus: 'sata' } }] };
    const template = {
      metadata: { labels: { app: 'shop' } },
      spec: { hostname: 'ledger', volumes: [...spec.volumes, seed], domain: { devices } },
    };
    const body = { metadata: { labels: { tier: 'gold' } }, spec: { template } };
    await scene.admin.patch(VIRTUAL_MACHINES, { namespace: 'default', name: 'seeded' }, { type: 'merge', body });

    const [bare, whole] = [join(dir, 'bare.ova'), join(dir, 'whole.ova')];
    const without = await scene.virtctl('export', 'ovf', 'seeded', '--ova', bare);
    assert.equal(without.code, 0, without.err);
    assert.match(
      without.err,
      /Note: the cloud-init data of the disk seed is in the Secret keys and is not exported; use/,
    );
    assert.ok(!readFileSync(bare).includes(secret.userdata));
    // Disks and TPM state are secrets, too.
    assert.equal(statSync(bare).mode & 0o777, 0o600);
    const asked = await scene.virtctl('import', 'ovf', bare, '--name', 'sprout', '--dry-run');
    assert.match(
      asked.err,
      /create the Secret sprout-seed-cloudinit with it before the start, or name one with --secret/,
    );
    const strange = await scene.virtctl('import', 'ovf', bare, '--secret', 'root=keys', '--dry-run');
    assert.match(strange.err, /--secret names "root"; the disks with cloud-init data in a Secret are seed/);
    const mapped = await scene.virtctl('import', 'ovf', bare, '--name', 'x', '--secret', 'seed=keys', '--dry-run');
    assert.match(mapped.out, /secretRef:\n +name: keys\n/);

    const exported = await scene.virtctl('export', 'ovf', 'seeded', '--ova', whole, '--include-secrets');
    assert.equal(exported.code, 0, exported.err);
    assert.equal(statSync(whole).mode & 0o777, 0o600);
    await aVolumeFor('sprout-root');
    const imported = await scene.virtctl('import', 'ovf', whole, '--name', 'sprout', '--storage-class', 'manual');
    assert.equal(imported.code, 0, imported.err);
    const [from, to] = [await scene.readVm('seeded'), await scene.readVm('sprout')];
    assert.deepEqual([to.metadata.labels, to.spec.template.metadata.labels], [{ tier: 'gold' }, { app: 'shop' }]);
    const name = 'sprout-seed-cloudinit';
    assert.deepEqual(to.spec.template.spec.volumes[1], {
      name: 'seed',
      cloudInitNoCloud: { secretRef: { name }, networkData: 'version: 2' },
    });
    const made = await scene.admin.get(SECRETS, { namespace: 'default', name });
    assert.deepEqual([made.data, made.metadata.ownerReferences?.[0]?.uid], [secret, to.metadata.uid]);
    const data = { userData: Buffer.alloc(0), networkData: undefined };
    const metaData = (vm: Loose) =>
      buildCloudInitFiles(data, { metadata: vm.metadata, spec: vm.spec.template.spec }).get('meta-data')?.toString();
    assert.equal(metaData(to), metaData(from), 'cloud-init sees the same instance');
    assert.match(metaData(to) ?? '', new RegExp(UUID));

    await scene.admin.delete(SECRETS, { namespace: 'default', name: 'keys' });
    const gone = await scene.virtctl('export', 'ovf', 'seeded', '--include-secrets');
    assert.match(gone.err, /Cannot export VM seeded: the Secret keys of the disk seed does not exist; correct it/);
  });

  test('prints the objects of an import with --dry-run, and creates nothing', async () => {
    const ova = join(dir, 'db.ova');
    const { code, out } = await scene.virtctl('import', 'ovf', ova, '--name', 'idea', '--new-identity', '--dry-run');
    assert.equal(code, 0);
    assert.match(out, /^apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n {2}name: idea-root\n/);
    assert.match(out, /selfsame\.io\/upload: "true"/);
    assert.match(out, /---\napiVersion: kubevirt\.io\/v1\nkind: VirtualMachine\n/);
    assert.doesNotMatch(out, new RegExp(`${UUID}|serial-1|02:00:00:00:00:17`));
    await assert.rejects(scene.readVm('idea'));
  });

  test('deletes the objects of an import that fails', async () => {
    const ova = join(dir, 'db.ova');
    await aVolumeFor('broken-root');
    disks.use = 'PersistentVolume "pv-broken-root" is in use by pod "p"';
    const { code, err } = await scene.virtctl('import', 'ovf', ova, '--name', 'broken', '--storage-class', 'manual');
    disks.use = undefined;
    assert.equal(code, 1);
    assert.match(
      err,
      /error: Cannot import volume root of VM broken: .* is in use by pod "p"\nDeleted again: VirtualMachine broken, PersistentVolumeClaim broken-root\n$/,
    );
    await assert.rejects(scene.readVm('broken'));
  });

  test('prints the error of the node during the upload of a disk', async () => {
    await aVolumeFor('halfway-root');
    disks.wrap = failWith('the file system has 12 bytes left');
    const ova = join(dir, 'db.ova');
    const { code, err } = await scene.virtctl('import', 'ovf', ova, '--name', 'halfway', '--storage-class', 'manual');
    disks.wrap = (upload) => upload;
    assert.equal(code, 1);
    assert.match(
      err,
      /Cannot import volume root of VM halfway: the file system has 12 bytes left\nDeleted again: VirtualMachine halfway, /,
    );
  });

  test('protects an imported VM from deletion when its disks are complete, and not before', async () => {
    await aStoppedVm('vault');
    const body = { metadata: { labels: { [PROTECTION_LABEL]: 'true', tier: 'gold' } } };
    await scene.admin.patch(VIRTUAL_MACHINES, { namespace: 'default', name: 'vault' }, { type: 'merge', body });
    const ova = join(dir, 'vault.ova');
    assert.equal((await scene.virtctl('export', 'ovf', 'vault', '--ova', ova)).code, 0);
    await aVolumeFor('safe-root');
    const labels: object[] = [];
    disks.wrap = (upload) => ({
      ...upload,
      async receive(...args) {
        labels.push((await scene.readVm('safe')).metadata.labels);
        await upload.receive(...args);
      },
    });
    const imported = await scene.virtctl('import', 'ovf', ova, '--name', 'safe', '--storage-class', 'manual');
    disks.wrap = (upload) => upload;
    assert.equal(imported.code, 0, imported.err);
    assert.deepEqual(labels, [{ tier: 'gold' }], 'a protected VM would refuse the content of its disks');
    assert.deepEqual((await scene.readVm('safe')).metadata.labels, { [PROTECTION_LABEL]: 'true', tier: 'gold' });
  });

  test('shows the identity of an imported VM before its first start', async () => {
    const { out } = await scene.virtctl('identity', 'show', 'copy');
    assert.match(out, /\nnic-default +interface\/virtio +0000:03:00\.0 /);
    assert.match(out, new RegExp(`\nUUID: +${UUID}\n`));
  });

  test('creates nothing if the name is in use', async () => {
    const { code, err } = await scene.virtctl('import', 'ovf', join(dir, 'db.ova'), '--name', 'db');
    assert.equal(code, 1);
    assert.match(
      err,
      /^error: Cannot import VM db: virtualmachines\.kubevirt\.io "db" already exists\nNothing was created\.\n$/m,
    );
  });

  test('tells an OVF from an OVA', async () => {
    const path = join(dir, 'text.ova');
    const written = await scene.virtctl('export', 'ovf', 'db', '-o', path);
    assert.equal(written.code, 2);
    assert.match(written.err, /^error: --output writes an OVF without disks; use --ova FILE for an OVA\nUsage: /);
    writeFileSync(path, '<?xml version="1.0"?><Envelope/>');
    const read = await scene.virtctl('import', 'ovf', path);
    assert.match(read.err, /it is an OVF, not an archive; rename it so that it ends with \.ovf/);
  });

  test('uses existing claims as disks', async () => {
    const ovf = join(dir, 'db.ovf');
    assert.equal((await scene.virtctl('export', 'ovf', 'db', '-o', ovf)).code, 0);
    const missing = await scene.virtctl('import', 'ovf', ovf, '--name', 'third');
    assert.match(
      missing.err,
      /the file "root\.img" of the disk root is missing: it is not in the directory of the OVF; use --claim root=CLAIM/,
    );
    const nowhere = await scene.virtctl('import', 'ovf', ovf, '--name', 'third', '--claim', 'root=nowhere');
    assert.match(nowhere.err, /persistentvolumeclaims "nowhere" not found/);
    const strange = await scene.virtctl('import', 'ovf', ovf, '--claim', 'swap=a', '--claim', 'root=b', '--dry-run');
    assert.match(strange.err, /--claim names the unknown disk "swap"; the disks are root/);
    const done = await scene.virtctl('import', 'ovf', ovf, '--name', 'third', '--claim', 'root=db-root');
    assert.equal(done.code, 0, done.err);
    const [volume] = (await scene.readVm('third')).spec.template.spec.volumes;
    assert.deepEqual(volume, { name: 'root', persistentVolumeClaim: { claimName: 'db-root' } });
  });

  test('exports to libvirt XML and imports it', async () => {
    const xml = join(dir, 'db.xml');
    assert.equal((await scene.virtctl('export', 'libvirt', 'db', '-o', xml)).code, 0);
    assert.match(readFileSync(xml, 'utf8'), new RegExp(`<uuid>${UUID}</uuid>`));
    const asked = await scene.virtctl('import', 'libvirt', xml, '--name', 'fourth');
    assert.match(asked.err, /name the claim with its content with --claim root=CLAIM/);
    const done = await scene.virtctl('import', 'libvirt', xml, '--name', 'fourth', '--claim', 'root=db-root');
    assert.equal(done.code, 0, done.err);
    const { metadata } = await scene.readVm('fourth');
    const { devices } = JSON.parse(metadata.annotations[IMPORTED_DEVICES_ANNOTATION]);
    assert.equal(devices.find(({ id }: Loose) => id === 'nic-default').address.bus, '0x03');
  });

  const refused: Record<string, { content: string; err: RegExp }> = {
    'a file that is not an OVF': { content: 'hello', err: /^error: Cannot import .*bad\.ovf:\n {2}\S/ },
    'a file with entities': {
      content: '<!DOCTYPE a [<!ENTITY b "c">]><Envelope>&b;</Envelope>',
      err: /^error: Cannot import .*bad\.ovf:\n {2}.*DOCTYPE/i,
    },
  };
  for (const [title, { content, err }] of Object.entries(refused)) {
    test(`refuses ${title}`, async () => {
      const path = join(dir, 'bad.ovf');
      writeFileSync(path, content);
      const answer = await scene.virtctl('import', 'ovf', path);
      assert.equal(answer.code, 1);
      assert.match(answer.err, err);
    });
  }

  test('does not export a running VM or a disk in use', async () => {
    await aStoppedVm('busy');
    disks.use = 'PersistentVolume "pv-busy-root" is in use by pod "p"';
    const used = await scene.virtctl('export', 'ovf', 'busy', '--ova', join(dir, 'busy.ova'));
    disks.use = undefined;
    assert.match(used.err, /is in use by pod "p"/);
    await scene.createVmi('busy', { phase: 'Running' });
    const runs = await scene.virtctl('export', 'ovf', 'busy', '--ova', join(dir, 'busy.ova'));
    assert.match(runs.err, /^error: Cannot export volume root of VM busy: /);
    assert.match(runs.err, /VM is running; stop it with "virtctl stop", or restore a snapshot of it to a new VM/);
    assert.deepEqual(
      readdirSync(dir).filter((name) => name.startsWith('busy')),
      [],
    );
  });

  test('says whether the devices of a VM are unknown because it never ran, or because it has just started', async () => {
    const noteOf = async (name: string) => (await scene.virtctl('export', 'ovf', name, '--output', '-')).err;
    const name = scene.newName();
    await scene.createVm(name, { runStrategy: 'Halted' });
    assert.match(await noteOf(name), /^Note: VM \S+ has not run yet, so its devices have no addresses$/m);
    await scene.patchStatus(VIRTUAL_MACHINES, name, { created: true });
    assert.match(
      await noteOf(name),
      /^Note: the devices of VM \S+, which has just started, are not known yet, .*again$/m,
    );
  });

  test('refuses a file that is larger than its disk, and a disk over plain HTTP', async () => {
    await aStoppedVm('full');
    const large = join(dir, 'large.ovf');
    const { out } = await scene.virtctl('export', 'ovf', 'full');
    writeFileSync(large, out);
    writeFileSync(join(dir, 'root.img'), Buffer.alloc(5 * MIB));
    const { err } = await scene.virtctl('import', 'ovf', large, '--name', 'larger');
    assert.match(err, /the file "root\.img" has 5242880 bytes, but its disk "root" has 4194304/);
    const path = '/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/full/importdisk?volume=root';
    const answer = await scene.call('GET', path);
    assert.equal(answer.status, 400, 'only WebSockets are accepted');
  });

  test('shows the identity, its history and pending changes', async () => {
    const shown = await scene.virtctl('identity', 'show', 'db');
    assert.equal(shown.code, 0, shown.err);
    assert.match(shown.out, new RegExp(`^Name: +default/db\nUUID: +${UUID}\n`));
    assert.match(
      shown.out,
      /\nDEVICE +TYPE +ADDRESS +BOOT +PLUGGED +MANAGED\nnic-default +interface\/virtio +0000:03:00\.0/,
    );
    assert.match(shown.out, /\npcie\.0\n/);
    const json = JSON.parse((await scene.virtctl('identity', 'show', 'db', '-o', 'json')).out);
    assert.deepEqual([json.uuid, json.machine, json.devices.length], [UUID, 'pc-q35-7.2', 2]);
    assert.equal(
      (await scene.virtctl('identity', 'history', 'db')).out,
      'VirtualMachine db has no history: it has not been started yet.\n',
    );
    const template = { spec: { domain: { machine: { type: 'pc-q35-6.2' } } } };
    const before = await scene.virtctl('identity', 'diff', 'db', '--exit-code', '-o', 'json');
    await scene.admin.patch(
      VIRTUAL_MACHINES,
      { namespace: 'default', name: 'db' },
      { type: 'merge', body: { spec: { template } } },
    );
    const { code, out } = await scene.virtctl('identity', 'diff', 'db');
    assert.equal(code, 0);
    assert.match(
      out,
      /^serial\n.*\nmachine type\n {2}- pc-q35-7\.2\n {2}\+ pc-q35-6\.2\n {2}# the template of the VM changed\n/s,
    );
    const flagged = await scene.virtctl('identity', 'diff', 'db', '--exit-code');
    assert.deepEqual([flagged.code, flagged.err, before.code], [1, '', 1]);
  });
});

/** addvolume and removevolume, directly and through virtctl: client, TLS, API server, subresources. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, suite, test } from 'node:test';
import { EPHEMERAL_HOTPLUG_ANNOTATION } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import {
  assertRefused,
  startSubresourcesScene,
  type SubresourceResponse,
  type SubresourcesScene,
} from '#test/scenarios/subresources-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

const IN_NAMESPACE = '/apis/subresources.kubevirt.io/v1/namespaces/default';
const RUNS = { phase: 'Running' };
const HALTED = { runStrategy: 'Halted' };
const aVolume = (name: string, claimName = name) => ({
  name,
  disk: { disk: { bus: 'virtio' }, serial: 'A1' },
  volumeSource: { persistentVolumeClaim: { claimName } },
});
const VOLUME = { name: 'data', persistentVolumeClaim: { claimName: 'data', hotpluggable: true } };
const DISK = { name: 'data', disk: { bus: 'virtio' }, serial: 'A1' };

let scene: SubresourcesScene;
const cleanups: (() => unknown)[] = [];

before(async () => {
  scene = await startSubresourcesScene({ after: (fn) => cleanups.push(fn) });
  for (const name of ['data', 'more', `long-${'x'.repeat(60)}`]) await createClaim(name);
});
after(async () => {
  await scene?.stop();
  for (const cleanup of cleanups) await cleanup();
});
beforeEach(() => void (scene.onRead = undefined));

const createClaim = (name: string) =>
  scene.admin.create(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'default' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  });

const callVerb = (kind: string, name: string, verb: string, body?: unknown): Promise<SubresourceResponse> =>
  scene.call('PUT', `${IN_NAMESPACE}/${kind}/${name}/${verb}`, { body });
const onVm = (name: string, verb: string, body?: unknown) => callVerb('virtualmachines', name, verb, body);
const onVmi = (name: string, verb: string, body?: unknown) => callVerb('virtualmachineinstances', name, verb, body);
const volumesOf = ({ volumes, domain }: Loose) => [volumes ?? [], domain.devices?.disks ?? []];
const annotationOf = ({ metadata }: Loose) => metadata.annotations?.[EPHEMERAL_HOTPLUG_ANNOTATION];

suite('volumes of a VM', () => {
  test('are added to its template and removed, and a dry run changes nothing', async () => {
    const name = scene.newName();
    await scene.createVm(name, HALTED);
    const made = await scene.readVm(name);
    assert.equal((await onVm(name, 'addvolume', { ...aVolume('data'), dryRun: ['All'] })).status, 202);
    assert.deepEqual(await scene.readVm(name), made);

    const added = await onVm(name, 'addvolume', aVolume('data'));
    assert.deepEqual([added.status, added.body], [202, '']);
    const vm = await scene.readVm(name);
    assert.deepEqual(volumesOf(vm.spec.template.spec), [[VOLUME], [DISK]]);

    const repeated = await onVm(name, 'addvolume', aVolume('data'));
    assert.equal(repeated.status, 409);
    assert.equal(
      repeated.body.message,
      `Operation cannot be fulfilled on virtualmachine.kubevirt.io "${name}": Unable to add volume [data] because volume with that name already exists`,
    );

    assert.equal((await onVm(name, 'removevolume', { name: 'data', dryRun: ['All'] })).status, 202);
    assert.deepEqual(await scene.readVm(name), vm);
    assert.equal((await onVm(name, 'removevolume', { name: 'data' })).status, 202);
    assert.deepEqual(volumesOf((await scene.readVm(name)).spec.template.spec), [[], []]);
    const removed = await onVm(name, 'removevolume', { name: 'data' });
    assert.match(
      removed.body.message,
      /Unable to remove volume \[data\] because it does not exist; no volume can be unplugged$/,
    );
  });

  test('are computed again if the VM changes between read and write', async () => {
    const name = scene.newName();
    await scene.createVm(name, HALTED);
    let changes = 1;
    scene.onRead = async () => {
      if (changes-- > 0) assert.equal((await onVm(name, 'addvolume', aVolume('more'))).status, 202);
    };
    assert.equal((await onVm(name, 'addvolume', aVolume('data'))).status, 202);
    const [volumes, disks] = volumesOf((await scene.readVm(name)).spec.template.spec);
    assert.deepEqual(
      [volumes, disks].map((list: Loose[]) => list.map((candidate) => candidate.name)),
      [
        ['more', 'data'],
        ['more', 'data'],
      ],
    );
  });

  const refusals: Record<string, { verb: string; body?: unknown; code: number; message: RegExp; status?: Loose }> = {
    'a request without a body': {
      verb: 'addvolume',
      code: 400,
      message: /^Request with no body, a new name is expected/,
    },
    'a volume without a name': {
      verb: 'removevolume',
      body: { x: 1 },
      code: 400,
      message: /^RemoveVolumeOptions requires name to be set$/,
    },
    'a DataVolume': {
      verb: 'addvolume',
      body: { name: 'a', disk: {}, volumeSource: { dataVolume: { name: 'a' } } },
      code: 400,
      message: /dataVolume is not supported yet; name its claim in/,
    },
    'an unknown bus': {
      verb: 'addvolume',
      body: { ...aVolume('data'), disk: { disk: { bus: 'nvme' } } },
      code: 422,
      message: /disks\[0\]\.disk\.bus: Unsupported value: "nvme"/,
    },
    'a body that is too large': {
      verb: 'addvolume',
      body: { ...aVolume('data'), more: 'x'.repeat(70_000) },
      code: 413,
      message: /larger than 65536 bytes/,
    },
    'a volume while a snapshot is taken': {
      verb: 'addvolume',
      body: aVolume('data'),
      status: { snapshotInProgress: 's1' },
      code: 409,
      message: /Cannot update vm disks or volumes until snapshot "s1" completes$/,
    },
  };
  for (const [title, { verb, body, code, message, status }] of Object.entries(refusals)) {
    test(`refuses ${title}`, async () => {
      const name = scene.newName();
      await scene.createVm(name, HALTED, status);
      const answer = await onVm(name, verb, body);
      assert.equal(answer.status, code, JSON.stringify(answer.body));
      assert.match(answer.body.message, message);
    });
  }
});

suite('volumes of an instance', () => {
  test('are added and removed by annotations, and the VM does not change', async () => {
    const name = scene.newName();
    await scene.createVm(name, { runStrategy: 'Always' });
    await scene.createVmi(name, RUNS);
    const { spec } = await scene.readVm(name);
    assert.equal((await onVmi(name, 'addvolume', aVolume('data'))).status, 202);
    assert.equal((await onVmi(name, 'addvolume', aVolume('more'))).status, 202);
    const plugged = await scene.readVmi(name);
    assert.equal(annotationOf(plugged), '["data","more"]');
    assert.deepEqual(plugged.spec.volumes[0], VOLUME);
    assert.deepEqual(plugged.spec.domain.devices.disks[0], DISK);

    assert.equal((await onVmi(name, 'removevolume', { name: 'data' })).status, 202);
    assert.equal((await onVmi(name, 'removevolume', { name: 'more' })).status, 202);
    const unplugged = await scene.readVmi(name);
    assert.deepEqual([volumesOf(unplugged.spec), annotationOf(unplugged)], [[[], []], undefined]);
    assert.deepEqual((await scene.readVm(name)).spec, spec);
  });

  test('permanent concurrent changes cause a conflict of the instance', async () => {
    const name = scene.newName();
    await scene.createVmi(name, RUNS);
    let changes = 0;
    scene.onRead = async () => {
      const annotations = { [EPHEMERAL_HOTPLUG_ANNOTATION]: `["${changes++}"]` };
      const body = { metadata: { annotations } };
      await scene.admin.patch(VIRTUAL_MACHINE_INSTANCES, { namespace: 'default', name }, { type: 'merge', body });
    };
    const { status, body } = await onVmi(name, 'addvolume', aVolume('data'));
    assert.equal(status, 409);
    assert.match(body.message, /on virtualmachineinstance\.kubevirt\.io ".*": the object has been modified/);
  });

  test('only while it runs', async () => {
    const name = scene.newName();
    await scene.createVmi(name, { phase: 'Scheduling' });
    const { status, body } = await onVmi(name, 'addvolume', aVolume('data'));
    assert.equal(status, 409);
    assert.match(body.message, /VMI is not running$/);
  });
});

test('discovery lists the verbs of both', async () => {
  const { body } = await scene.call('GET', '/apis/subresources.kubevirt.io/v1');
  const names = body.resources.map(({ name }: Loose) => name).filter((name: string) => name.endsWith('volume'));
  assert.deepEqual(names, [
    'virtualmachines/addvolume',
    'virtualmachines/removevolume',
    'virtualmachineinstances/addvolume',
    'virtualmachineinstances/removevolume',
  ]);
});

suite('virtctl', () => {
  const successOf = (what: string, name: string, volume: string) => ({
    code: 0,
    out: `Successfully submitted ${what} volume request to VM ${name} for volume ${volume}\n`,
    err: '',
  });

  test('adds and removes volumes of a running instance', async () => {
    const name = scene.newName();
    await scene.createVm(name, { runStrategy: 'Always' });
    await scene.createVmi(name, RUNS);
    assert.deepEqual(await scene.virtctl('addvolume', name, '--volume-name=data'), successOf('add', name, 'data'));
    const { spec } = await scene.readVmi(name);
    assert.deepEqual(volumesOf(spec), [[VOLUME], [{ name: 'data', serial: 'data', disk: { bus: 'scsi' } }]]);
    assert.deepEqual(
      await scene.virtctl('removevolume', name, '--volume-name', 'data'),
      successOf('remove', name, 'data'),
    );
    assert.deepEqual(volumesOf((await scene.readVmi(name)).spec), [[], []]);
    assert.equal((await scene.readVm(name)).spec.template.spec.volumes, undefined);
  });

  test('adds and removes volumes of a VM, with all options', async () => {
    const name = scene.newName();
    await scene.createVm(name, HALTED);
    const argv = ['addvolume', name, '--persist', '--volume-name=data', '--disk-name=disk1', '--serial=A-1'];
    const dry = await scene.virtctl(...argv, '--cache=writeback', '--bus=virtio', '--dry-run');
    assert.equal(dry.out, `Dry Run execution\n${successOf('add', name, 'data').out}`);
    assert.equal((await scene.readVm(name)).spec.template.spec.volumes, undefined);
    assert.deepEqual(await scene.virtctl(...argv, '--cache=writeback', '--bus=virtio'), successOf('add', name, 'data'));
    assert.deepEqual(volumesOf((await scene.readVm(name)).spec.template.spec), [
      [{ ...VOLUME, name: 'disk1' }],
      [{ name: 'disk1', disk: { bus: 'virtio' }, serial: 'A-1', cache: 'writeback' }],
    ]);
    const lun = await scene.virtctl('addvolume', name, '--persist', '--volume-name=more', '--disk-type=lun');
    assert.deepEqual(lun, successOf('add', name, 'more'));
    const { disks } = (await scene.readVm(name)).spec.template.spec.domain.devices;
    assert.deepEqual(disks[1], { name: 'more', lun: { bus: 'scsi' } });
    // By the name of the claim, because the volume was added by it.
    const removed = await scene.virtctl('removevolume', name, '--volume-name=data', '--persist');
    assert.deepEqual(removed, successOf('remove', name, 'data'));
    assert.deepEqual(
      (await scene.readVm(name)).spec.template.spec.volumes.map((volume: Loose) => volume.name),
      ['more'],
    );
  });

  test('a long claim name sets no serial', async () => {
    const [name, claim] = [scene.newName(), 'x'.repeat(40)];
    await createClaim(claim);
    await scene.createVm(name, HALTED);
    assert.equal((await scene.virtctl('addvolume', name, '--persist', `--volume-name=${claim}`)).code, 0);
    const { disks } = (await scene.readVm(name)).spec.template.spec.domain.devices;
    assert.deepEqual(disks, [{ name: claim, disk: { bus: 'scsi' } }]);
  });

  const LONG = `long-${'x'.repeat(60)}`;
  const refusals: Record<string, { argv: string[]; err: string }> = {
    'addvolume without a volume': { argv: ['addvolume', 'db'], err: 'required flag(s) "volume-name" not set' },
    'removevolume without a volume': { argv: ['removevolume', 'db'], err: 'required flag(s) "volume-name" not set' },
    'addvolume without a VM': { argv: ['addvolume', '--volume-name=data'], err: 'accepts 1 arg(s), received 0' },
    'a claim that does not exist': {
      argv: ['addvolume', 'db', '--volume-name=nothing'],
      err: 'Cannot add volume nothing to VM db: persistentvolumeclaims "nothing" not found in namespace "default"; ...',
    },
    'a user who may not add volumes': {
      argv: ['addvolume', 'db', '--volume-name=data', '--as=nobody'],
      err: 'Cannot add volume data to VM db: virtualmachineinstances.subresources.kubevirt.io "db" is forbidden: User "nobody" cannot update resource "virtualmachineinstances/addvolume" in API group "subresources.kubevirt.io" in the namespace "default"',
    },
    'an instance that does not exist': {
      argv: ['addvolume', 'nobody', '--volume-name=data'],
      err: 'Cannot add volume data to VM nobody: virtualmachineinstance.kubevirt.io "nobody" not found in namespace "default"; ...',
    },
    'a VM that does not exist': {
      argv: ['removevolume', 'nobody', '--volume-name=data', '--persist'],
      err: 'Cannot remove volume data from VM nobody: virtualmachine.kubevirt.io "nobody" not found in namespace "default"; ...',
    },
    'an unknown bus': {
      argv: ['addvolume', 'db', '--volume-name=data', '--bus=sata'],
      err: "Invalid bus type 'sata' for disk. Only 'scsi' and 'virtio' are supported.",
    },
    'an unknown bus of a LUN': {
      argv: ['addvolume', 'db', '--volume-name=data', '--disk-type=lun', '--bus=virtio'],
      err: "Invalid bus type 'virtio' for LUN disk. Only 'scsi' bus is supported.",
    },
    'an unknown type': {
      argv: ['addvolume', 'db', '--volume-name=data', '--disk-type=cdrom'],
      err: "Invalid disk type 'cdrom'. Only LUN and Disk are supported.",
    },
    'an unknown cache': {
      argv: ['addvolume', 'db', '--volume-name=data', '--cache=unsafe'],
      err: 'invalid cache "unsafe"; expected ...',
    },
    'a claim whose name is too long for a disk': {
      argv: ['addvolume', 'db', `--volume-name=${LONG}`],
      err: `Invalid volume name ${LONG}, must not exceed 63 characters. Use in conjunction with --disk-name to specify a shorter name`,
    },
    'a disk name that is too long': {
      argv: ['addvolume', 'db', '--volume-name=data', `--disk-name=${LONG}`],
      err: `Invalid disk name ${LONG}, must not exceed 63 characters`,
    },
  };
  for (const [title, { argv, err }] of Object.entries(refusals)) {
    test(`refuses ${title}`, async () => assertRefused(await scene.virtctl(...argv), err));
  }
});

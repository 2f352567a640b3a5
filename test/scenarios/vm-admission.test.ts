/** Our webhook through the whole core: kinds, configurations and service as the operator creates them. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { aSpec, aVm, aVmi } from '#api/validation/testing/valid-objects.ts';
import { newUid } from '#lib/ids.ts';
import { asAccount, type OperatorPlane } from '#operator/testing/operator-plane.ts';
import { startAdmissionScene, type AdmissionScene } from '#test/scenarios/admission-scene.ts';
import type { TestResponse, Loose, TestApi } from '#test/support/test-api.ts';

const VMS = '/apis/kubevirt.io/v1/namespaces/golden/virtualmachines';
const BLUE = '/apis/kubevirt.io/v1/namespaces/blue/virtualmachines';
const VMIS = '/apis/kubevirt.io/v1/namespaces/golden/virtualmachineinstances';
const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/selfsame-system/kubevirts/kubevirt';
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const EXAMPLES = new URL('../../examples/', import.meta.url);

let scene: AdmissionScene;
let api: TestApi;
let plane: OperatorPlane;

before(async () => {
  scene = await startAdmissionScene('golden', 'blue');
  ({ api, plane } = scene);
});
after(() => scene.stop());

let count = 0;
const withNewName = (object: Loose): Loose => ({ ...object, metadata: { ...object.metadata, name: `vm-${++count}` } });
const create = (object: Loose) => api.call('POST', object.kind === 'VirtualMachine' ? VMS : VMIS, { body: object });
const firmware = (value: unknown) => ({ spec: { template: { spec: { domain: { firmware: value } } } } });

test('a new VM gets its own identity', async () => {
  const [a, b] = await Promise.all([
    create(withNewName(aVm(firmware(null)))),
    create(withNewName(aVm(firmware(null)))),
  ]);
  const identities = [a, b].map(({ body }: TestResponse) => body.spec.template.spec.domain.firmware);
  for (const { uuid, serial } of identities) assert.deepEqual([UUID.test(uuid), UUID.test(serial)], [true, true]);
  assert.equal(new Set(identities.flatMap(({ uuid, serial }: Loose) => [uuid, serial])).size, 4);
});

test('an update neither adds nor changes the identity', async () => {
  const { body: vm } = await create(withNewName(aVm(firmware(null))));
  const path = `${VMS}/${vm.metadata.name}`;
  const labelled = await api.ok('PATCH', path, { body: { metadata: { labels: { a: 'b' } } } });
  assert.deepEqual(labelled.spec, vm.spec);
});

test('a uuid that another VM has causes a warning, on create and on update', async () => {
  const uuid = newUid();
  const shared = `firmware uuid ${uuid} is also that of`;
  const [first, second] = [
    withNewName(aVm(firmware({ uuid }))),
    withNewName(aVm(firmware({ uuid: uuid.toUpperCase() }))),
  ];
  assert.deepEqual((await create(first)).warnings, []);
  await plane.settle();
  const made = await create(second);
  assert.deepEqual(
    [made.status, made.warnings],
    [201, [`firmware uuid ${uuid.toUpperCase()} is also that of VirtualMachine "${first.metadata.name}"`]],
  );
  await api.ok('DELETE', `${VMS}/${second.metadata.name}`);
  await plane.settle();

  const elsewhere = withNewName(aVm({ ...firmware(null), metadata: { namespace: 'blue' } }));
  await api.ok('POST', BLUE, { body: elsewhere });
  const changed = await api.call('PATCH', `${BLUE}/${elsewhere.metadata.name}`, { body: firmware({ uuid }) });
  assert.deepEqual([changed.status, changed.warnings], [200, [`${shared} a VirtualMachine in another namespace`]]);
});

test('an instance that a user creates gets a uuid and our finalizer', async () => {
  const { body } = await create(withNewName(aVmi({ spec: { domain: { firmware: null } } })));
  assert.match(body.spec.domain.firmware.uuid, UUID);
  assert.deepEqual(body.metadata.finalizers, ['kubevirt.io/foregroundDeleteVirtualMachine']);
});

interface Refusal {
  readonly object: () => Loose;
  readonly message: RegExp;
  readonly warnings?: string[];
}

const deprecated = ['spec.running is deprecated, please use spec.runStrategy instead.'];

const refusals: Record<string, Refusal> = {
  'a field of a later version': {
    object: () => aVm({ spec: { template: { spec: { domain: { launchSecurity: {} } } } } }),
    message:
      /^admission webhook "validate-virtualmachines\.selfsame\.io" denied the request: spec\.template\.spec\.domain\.launchSecurity: Forbidden: is not supported yet$/,
  },
  "an element's field of a later version": {
    object: () =>
      aVm({
        spec: {
          template: { spec: { volumes: [{ name: 'root', containerDisk: { image: 'x' } }, aSpec().volumes?.[1]] } },
        },
      }),
    message: /spec\.template\.spec\.volumes\[0\]\.containerDisk: Forbidden: is not supported: .*persistentVolumeClaim/,
  },
  'a misspelled field': {
    object: () => aVmi({ spec: { domain: { memery: 1 } } }),
    message: /denied the request: spec\.domain\.memery: Forbidden: unknown field$/,
  },
  'running and runStrategy together': {
    object: () => aVm({ spec: { running: true } }),
    message:
      /Running and RunStrategy are mutually exclusive\. Note that Running is deprecated, please use RunStrategy instead$/,
    warnings: deprecated,
  },
  'neither running nor runStrategy': {
    object: () => aVm({ spec: { runStrategy: null } }),
    message: /RunStrategy must be specified: must be one of Always, Halted, /,
  },
  'a value that the schema does not allow': {
    object: () =>
      aVm({ spec: { template: { spec: { domain: { devices: { disks: [{ name: 'a', disk: { bus: 'nvme' } }] } } } } } }),
    message: /Unsupported value: "nvme": supported values: "virtio", "sata", "scsi", "ide", "usb"/,
  },
  'an invalid quantity': {
    object: () => aVm({ spec: { template: { spec: { domain: { memory: { guest: '1 GB' } } } } } }),
    message: /memory\.guest: Invalid value: "1 GB": quantities must match/,
  },
};

for (const [name, { object, message, warnings = [] }] of Object.entries(refusals)) {
  test(`refuses ${name}`, async () => {
    const answer = await create(withNewName(object()));
    assert.equal(answer.status, 422, answer.text);
    assert.match(answer.body.message, message);
    assert.deepEqual(answer.warnings, warnings);
  });
}

test('spec.running is allowed, with a warning', async () => {
  const answer = await create(withNewName(aVm({ spec: { runStrategy: null, running: false } })));
  assert.equal(answer.status, 201);
  assert.deepEqual(answer.warnings, deprecated);
});

test('machine types follow the KubeVirt object, and existing VMs can still be stopped', async () => {
  const { body: vm } = await create(withNewName(aVm()));
  await api.ok('PATCH', KUBEVIRT, { body: { spec: { configuration: { emulatedMachines: ['pc-q35-9.*'] } } } });
  await plane.settle();
  const refused = await create(withNewName(aVm()));
  assert.match(refused.body.message, /machine\.type is not supported: q35 \(allowed values: \[pc-q35-9\.\*\]\)$/);
  await api.ok('PATCH', `${VMS}/${vm.metadata.name}`, { body: { spec: { runStrategy: 'Halted' } } });
  await api.ok('PATCH', KUBEVIRT, { body: { spec: { configuration: { emulatedMachines: null } } } });
  await plane.settle();
  assert.equal((await create(withNewName(aVm()))).status, 201);
});

test('there is one KubeVirt object, and its globs are valid', async () => {
  const body = { apiVersion: 'kubevirt.io/v1', kind: 'KubeVirt', metadata: { name: 'another' }, spec: {} };
  const second = await api.call('POST', '/apis/kubevirt.io/v1/namespaces/golden/kubevirts', { body });
  assert.match(second.body.message, /only one KubeVirt object is allowed, and it exists: selfsame-system\/kubevirt$/);
  const edit = { body: { spec: { configuration: { emulatedMachines: ['[--'] } } } };
  assert.match(
    (await api.call('PATCH', KUBEVIRT, edit)).body.message,
    /emulatedMachines\[0\].*syntax error in pattern$/,
  );
});

test('an instance cannot be changed, except for its grace period by our parts', async () => {
  const { body: vmi } = await create(withNewName(aVmi()));
  const path = `${VMIS}/${vmi.metadata.name}`;
  const cores = await api.call('PATCH', path, { body: { spec: { domain: { cpu: { cores: 4 } } } } });
  assert.match(cores.body.message, /update of VMI object is restricted$/);
  const grace = { body: { spec: { terminationGracePeriodSeconds: 0 } } };
  assert.equal((await api.call('PATCH', path, grace)).status, 422);
  assert.equal((await api.call('PATCH', path, { ...grace, user: asAccount('selfsame-subresources') })).status, 200);
});

test('finalizers can be removed from an object that is being deleted', async () => {
  const { body: vmi } = await create(withNewName(aVmi()));
  const path = `${VMIS}/${vmi.metadata.name}`;
  await api.ok('DELETE', path);
  await api.ok('PATCH', path, { body: { metadata: { finalizers: null } }, user: asAccount('vmi-controller') });
  assert.equal((await api.call('GET', path)).status, 404);
});

/** The URL of each kind, for creates. */
const PATHS: Record<string, string> = {
  ConfigMap: '/api/v1/namespaces/golden/configmaps',
  CustomResourceDefinition: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
  Gadget: '/apis/example.selfsame.io/v1/namespaces/golden/gadgets',
  NetworkAttachmentDefinition: '/apis/k8s.cni.cncf.io/v1/namespaces/golden/network-attachment-definitions',
  PersistentVolumeClaim: '/api/v1/namespaces/golden/persistentvolumeclaims',
  ValidatingAdmissionPolicy: '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
  Secret: '/api/v1/namespaces/golden/secrets',
  ValidatingAdmissionPolicyBinding: '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings',
  VirtualMachine: VMS,
  VirtualMachineRestore: '/apis/snapshot.kubevirt.io/v1beta1/namespaces/golden/virtualmachinerestores',
  Service: '/api/v1/namespaces/golden/services',
  VirtualMachineSnapshot: '/apis/snapshot.kubevirt.io/v1beta1/namespaces/golden/virtualmachinesnapshots',
};

// In the order of their names: a definition comes before the objects that it defines.
const examples = (await readdir(EXAMPLES)).filter((name) => name.endsWith('.yaml')).toSorted();

test('the repository has examples', () => {
  for (const known of ['vm.yaml', 'snapshot.yaml', 'restore.yaml']) assert.ok(examples.includes(known), known);
});

test('the README lists the examples', async () => {
  const list = await readFile(new URL('README.md', EXAMPLES), 'utf8');
  assert.deepEqual(
    examples.filter((name) => !list.includes(`(${name})`)),
    [],
  );
});

test('the cloud-init disks of the examples are on the virtio bus, for which every cloud kernel has a driver', async () => {
  const buses: Record<string, unknown> = {};
  for (const file of examples) {
    for (const document of parseAllDocuments(await readFile(new URL(file, EXAMPLES), 'utf8'))) {
      const { volumes = [], domain }: Loose = document.toJS().spec?.template?.spec ?? {};
      for (const { name, cloudInitNoCloud, cloudInitConfigDrive } of volumes) {
        if ((cloudInitNoCloud ?? cloudInitConfigDrive) === undefined) continue;
        buses[`${file} ${name}`] = domain.devices.disks.find((disk: Loose) => disk.name === name).disk?.bus;
      }
    }
  }
  assert.ok(Object.keys(buses).length >= 3);
  assert.deepEqual(
    Object.entries(buses).filter(([, bus]) => bus !== 'virtio'),
    [],
  );
});

/** Needs a running guest: docs/live-migration.md has one, and test/docs applies it there. */
const LATER = new Set(['migration.yaml']);

for (const file of examples.filter((name) => !LATER.has(name))) {
  test(`examples/${file} is accepted unchanged`, async () => {
    const text = await readFile(new URL(file, EXAMPLES), 'utf8');
    for (const document of parseAllDocuments(text)) {
      const object: Loose = document.toJS();
      const path = PATHS[object.kind] ?? assert.fail(`no URL for kind ${object.kind}`);
      const answer = await api.call('POST', `${path}?fieldValidation=Strict`, { body: object });
      assert.equal(answer.status, 201, answer.text);
      assert.deepEqual(answer.warnings, []);
      // A new kind is served once it is established.
      await plane.settle();
    }
  });
}

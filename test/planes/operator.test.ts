/** The operator through the whole core: what it creates, what it repairs, and what it leaves to other writers. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { KUBEVIRTS as KUBEVIRT_KIND } from '#api/kubevirt/kind.ts';
import { objectKey } from '#client/object-key.ts';
import { LocalServices } from '#engine/remote/local-services.ts';
import { repair } from '#operator/desired.ts';
import { definitions } from '#operator/objects/definitions.ts';
import { maintainedObjects } from '#operator/objects/installation.ts';
import { asAccount, startOperator, type OperatorPlane } from '#operator/testing/operator-plane.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses';
const SNAPSHOTS = '/apis/snapshot.storage.k8s.io/v1';
const KUBEVIRTS = '/apis/kubevirt.io/v1/namespaces/selfsame-system/kubevirts';
const VMIS = '/apis/kubevirt.io/v1/namespaces/golden/virtualmachineinstances';
const VMI_UUID = '5d307ca9-b3ef-428c-8861-06e72d69f223';

let api: TestApi;
let plane: OperatorPlane;
const services = new LocalServices();

before(async () => {
  services.register('selfsame-system', 'selfsame-subresources', {
    api: ({ path }) => {
      const list = {
        kind: 'APIResourceList',
        apiVersion: 'v1',
        groupVersion: path.slice('/apis/'.length),
        resources: [],
      };
      return { status: 200, contentType: 'application/json', body: Buffer.from(JSON.stringify(list)) };
    },
  });
  services.register('selfsame-system', 'selfsame-webhook', {
    review: async (_, review) => ({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: { uid: (review as Loose).request.uid, allowed: true },
    }),
  });
  api = await startTestApi({ services });
  plane = await startOperator(api);
  await plane.settle();
  await api.ok('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'golden' } },
  });
});
after(async () => {
  await plane.stop();
  await api.stop();
});

const readKubeVirt = (): Promise<Loose> => api.ok('GET', `${KUBEVIRTS}/kubevirt`);
const conditionsOf = (object: Loose): Record<string, string> =>
  Object.fromEntries(object.status.conditions.map(({ type, status }: Loose) => [type, status]));

const AVAILABLE = { Available: 'True', Progressing: 'False', Degraded: 'False', DeleteProtectionAvailable: 'True' };

test("everything is installed with the operator's own permissions, and reported as available", async () => {
  const object = await readKubeVirt();
  assert.deepEqual(conditionsOf(object), AVAILABLE);
  assert.equal(object.status.phase, 'Deployed');
  const { items } = await api.ok('GET', CRDS);
  assert.deepEqual(
    items.map(({ metadata }: Loose) => metadata.name),
    [
      ...['guestnetworks.network.selfsame.io', 'kubevirts.kubevirt.io'],
      ...['network-attachment-definitions.k8s.cni.cncf.io', 'networkaddresses.network.selfsame.io'],
      'storageprofiles.cdi.kubevirt.io',
      'virtualmachineidentities.identity.selfsame.io',
      'virtualmachineinstancemigrations.kubevirt.io',
      'virtualmachineinstances.kubevirt.io',
      'virtualmachinerestores.snapshot.kubevirt.io',
      'virtualmachines.kubevirt.io',
      'virtualmachinesnapshotcontents.snapshot.kubevirt.io',
      'virtualmachinesnapshots.snapshot.kubevirt.io',
      'volumesnapshotclasses.snapshot.storage.k8s.io',
      'volumesnapshotcontents.snapshot.storage.k8s.io',
      'volumesnapshots.snapshot.storage.k8s.io',
    ],
  );
  for (const path of [
    `${ADMISSION}/mutatingwebhookconfigurations/selfsame`,
    `${ADMISSION}/validatingwebhookconfigurations/selfsame`,
    `${ADMISSION}/validatingadmissionpolicybindings/selfsame-node-restriction`,
    '/apis/apiregistration.k8s.io/v1/apiservices/v1alpha3.subresources.kubevirt.io',
    '/api/v1/namespaces/selfsame-system/serviceaccounts/vm-controller',
    `${CLASSES}/shared-block`,
    `${SNAPSHOTS}/volumesnapshotclasses/selfsame-local`,
    `${ADMISSION}/validatingadmissionpolicybindings/selfsame-node-snapshots`,
    `${ADMISSION}/validatingadmissionpolicybindings/selfsame-firmware-identity`,
    `${ADMISSION}/validatingadmissionpolicybindings/kubevirt-vm-deletion-protection`,
    '/api/v1/namespaces/selfsame-system/serviceaccounts/protection-controller',
  ]) {
    await api.ok('GET', path);
  }
});

test('no policy has type warnings', async () => {
  const { items } = await api.ok('GET', `${ADMISSION}/validatingadmissionpolicies`);
  assert.ok(items.length >= 7);
  for (const { metadata, status } of items) assert.deepEqual(status.typeChecking, {}, metadata.name);
});

test('objects that are in place are not written', async () => {
  await plane.settle();
  const { revision } = api.store;
  await plane.stop();
  plane = await startOperator(api);
  await plane.settle();
  assert.equal(api.store.revision, revision);
  // A write that changes nothing has no revision, but would be sent in each reconcile.
  for (const wanted of [...definitions, ...maintainedObjects]) {
    assert.equal(repair(wanted, plane.informer(wanted.type).get(objectKey(wanted.object))), undefined);
  }
});

interface Drift {
  readonly path: string;
  /** A merge patch; undefined deletes the object. */
  readonly edit?: Loose;
  readonly read: (object: Loose) => unknown;
  readonly want: unknown;
}

const drifts: Record<string, Drift> = {
  'a rule that a user added to a role': {
    path: `${RBAC}/clusterroles/selfsame:selfsame-webhook`,
    edit: { rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }] },
    read: ({ rules }) => rules.map((rule: Loose) => `${rule.verbs} ${rule.apiGroups}/${rule.resources}`),
    want: [
      'get,list,watch kubevirt.io/kubevirts',
      'get,list,watch network.selfsame.io/guestnetworks,networkaddresses',
      'get,list,watch kubevirt.io/virtualmachines',
      'get,list,watch snapshot.kubevirt.io/virtualmachinerestores',
      ...['get kubevirt.io/virtualmachineinstances', 'get,list kubevirt.io/virtualmachineinstancemigrations'],
      ...['get /pods', 'get,patch kubevirt.io/virtualmachineinstances/status'],
    ],
  },
  'a role that a user deleted': {
    path: `${RBAC}/clusterroles/selfsame:vm-controller`,
    read: ({ rules }) => rules.length > 0,
    want: true,
  },
  'a policy that a condition narrowed': {
    path: `${ADMISSION}/validatingadmissionpolicies/selfsame-node-volumes`,
    edit: { spec: { matchConditions: [{ name: 'is-a-node', expression: 'false' }] } },
    read: ({ spec }) => spec.matchConditions.map(({ expression }: Loose) => expression),
    want: ["'system:nodes' in request.userInfo.groups"],
  },
  'a binding that only warns': {
    path: `${ADMISSION}/validatingadmissionpolicybindings/selfsame-node-restriction`,
    edit: { spec: { validationActions: ['Warn'], matchResources: { namespaceSelector: { matchLabels: { a: 'b' } } } } },
    read: ({ spec }) => [spec.validationActions, spec.matchResources?.namespaceSelector?.matchLabels],
    want: [['Deny'], undefined],
  },
  'a protection policy that fails open': {
    path: `${ADMISSION}/validatingadmissionpolicies/kubevirt-vm-deletion-protection`,
    edit: { spec: { failurePolicy: 'Ignore', validations: [{ expression: 'true' }] } },
    read: ({ spec }) => [spec.failurePolicy, spec.validations.length, spec.validations[0].expression === 'true'],
    want: ['Fail', 1, false],
  },
  'a protection policy that was deleted': {
    path: `${ADMISSION}/validatingadmissionpolicies/kubevirt-vm-deletion-protection`,
    read: ({ metadata }) => metadata.labels['app.kubernetes.io/component'],
    want: 'vmDeleteProtection',
  },
  'a protection binding that was deleted': {
    path: `${ADMISSION}/validatingadmissionpolicybindings/kubevirt-vm-deletion-protection`,
    read: ({ spec }) => [spec.policyName, spec.validationActions],
    want: ['kubevirt-vm-deletion-protection', ['Deny']],
  },
  'a protection binding that only warns': {
    path: `${ADMISSION}/validatingadmissionpolicybindings/kubevirt-vm-deletion-protection`,
    edit: { spec: { validationActions: ['Warn'] } },
    read: ({ spec }) => spec.validationActions,
    want: ['Deny'],
  },
  'a binding that excludes objects from its policy': {
    path: `${ADMISSION}/validatingadmissionpolicybindings/selfsame-protected-vms`,
    edit: {
      spec: {
        matchResources: {
          excludeResourceRules: [
            { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['namespaces'], scope: '*' },
          ],
        },
      },
    },
    read: ({ spec }) => spec.matchResources?.excludeResourceRules ?? [],
    want: [],
  },
  'a binding that makes its policy wait for a parameter': {
    path: `${ADMISSION}/validatingadmissionpolicybindings/selfsame-protected-vms`,
    edit: { spec: { paramRef: { name: 'x', parameterNotFoundAction: 'Allow' } } },
    read: ({ spec }) => spec.paramRef ?? null,
    want: null,
  },
  'a webhook that must not block deletes of other objects': {
    path: `${ADMISSION}/validatingwebhookconfigurations/selfsame-protected-deletes`,
    read: ({ webhooks }) => webhooks.map(({ failurePolicy, timeoutSeconds }: Loose) => [failurePolicy, timeoutSeconds]),
    want: [['Ignore', 5]],
  },
  'a webhook that must not block evictions of other pods, and marks nothing in a dry run': {
    path: `${ADMISSION}/validatingwebhookconfigurations/selfsame-pod-evictions`,
    read: ({ webhooks }) =>
      webhooks.map(({ failurePolicy, timeoutSeconds, sideEffects }: Loose) => [
        failurePolicy,
        timeoutSeconds,
        sideEffects,
      ]),
    want: [['Ignore', 5, 'NoneOnDryRun']],
  },
  'a storage class that does not allow expansion': {
    path: `${CLASSES}/local`,
    edit: { allowVolumeExpansion: false },
    read: ({ allowVolumeExpansion, parameters }) => [allowVolumeExpansion, parameters],
    want: [true, { scope: 'node' }],
  },
  'a printer column that was removed from a kind': {
    path: `${CRDS}/kubevirts.kubevirt.io`,
    edit: { spec: { names: { shortNames: ['kv'] } } },
    read: ({ spec }) => spec.names.shortNames,
    want: ['kv', 'kvs'],
  },
  'an APIService that points to another service': {
    path: '/apis/apiregistration.k8s.io/v1/apiservices/v1.subresources.kubevirt.io',
    edit: { spec: { service: { name: 'evil' } } },
    read: ({ spec }) => spec.service.name,
    want: 'selfsame-subresources',
  },
};

for (const [name, { path, edit, read, want }] of Object.entries(drifts)) {
  test(`repairs ${name}`, async () => {
    const { metadata } = await api.ok('GET', path);
    if (edit === undefined) await api.ok('DELETE', path);
    else await api.ok('PATCH', path, { body: edit });
    await plane.settle();
    const object = await api.ok('GET', path);
    assert.deepEqual(read(object), want);
    // Repaired in place; only a deleted object has a new uid.
    assert.equal(object.metadata.uid === metadata.uid, edit !== undefined);
  });
}

test('a webhook whose selector was changed to match nothing is repaired', async () => {
  const path = `${ADMISSION}/validatingwebhookconfigurations/selfsame`;
  const { webhooks } = await api.ok('GET', path);
  const ignoring = {
    namespaceSelector: { matchLabels: { checked: 'yes' } },
    matchConditions: [{ name: 'x', expression: 'false' }],
  };
  await api.ok('PATCH', path, { body: { webhooks: webhooks.map((webhook: Loose) => ({ ...webhook, ...ignoring })) } });
  await plane.settle();
  assert.deepEqual((await api.ok('GET', path)).webhooks, webhooks);
});

test('labels of other writers, settings and the choice of the default class are kept', async () => {
  const annotations = { 'storageclass.kubernetes.io/is-default-class': 'false' };
  await api.ok('PATCH', `${CLASSES}/local`, { body: { metadata: { annotations, labels: { team: 'blue' } } } });
  const configuration = { emulatedMachines: ['q35'] };
  await api.ok('PATCH', `${KUBEVIRTS}/kubevirt`, { body: { spec: { configuration } } });
  await plane.settle();
  const { metadata } = await api.ok('GET', `${CLASSES}/local`);
  assert.equal(metadata.annotations['storageclass.kubernetes.io/is-default-class'], 'false');
  assert.equal(metadata.labels.team, 'blue');
  assert.deepEqual((await readKubeVirt()).spec.configuration, configuration);
});

test('a KubeVirt object that was deleted is created again', async () => {
  const { metadata } = await readKubeVirt();
  await api.ok('DELETE', `${KUBEVIRTS}/kubevirt`);
  // The definition was changed just now, which ends its watches: the delete may be seen a moment later.
  const known = plane.informer(KUBEVIRT_KIND);
  const current = () => known.get(objectKey({ metadata }));
  await known.waitUntil(() => current() !== undefined && current()?.metadata.uid !== metadata.uid);
  await plane.settle();
  assert.equal((await readKubeVirt()).status.phase, 'Deployed');
});

test('a problem that it cannot repair is reported', async () => {
  const path = `${CLASSES}/shared`;
  const { metadata: _, ...shared } = await api.ok('GET', path);
  await plane.stop();
  await api.ok('DELETE', path);
  await api.ok('POST', CLASSES, {
    body: { ...shared, metadata: { name: 'shared' }, provisioner: 'example.com/nfs' },
  });
  plane = await startOperator(api);
  await plane.settle();
  const object = await readKubeVirt();
  assert.deepEqual(conditionsOf(object), { ...AVAILABLE, Progressing: 'True', Degraded: 'True' });
  const degraded = object.status.conditions.find(({ type }: Loose) => type === 'Degraded');
  assert.equal(degraded.reason, 'CannotKeepObjects');
  assert.match(
    degraded.message,
    /storageclasses\.storage\.k8s\.io\/shared differed from its desired state: .*immutable/,
  );

  await api.ok('DELETE', path);
  await plane.settle();
  assert.deepEqual(conditionsOf(await readKubeVirt()), AVAILABLE);
});

test('a second operator at the same time changes nothing', async () => {
  const { revision } = api.store;
  const secondOperator = await startOperator(api);
  await secondOperator.settle();
  await secondOperator.stop();
  assert.equal(api.store.revision, revision);
});

const NODE = (name: string) => ({ name: `system:node:${name}`, groups: ['system:nodes', 'system:authenticated'] });

test('a node may write the status of its own instances only', async () => {
  const spec = { domain: { memory: { guest: '128Mi' }, firmware: { uuid: VMI_UUID } } };
  const body = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', metadata: { name: 'db' }, spec };
  await api.ok('POST', VMIS, { body });
  const write = (status: Loose, node: string) =>
    api.call('PATCH', `${VMIS}/db/status`, { body: { status }, user: NODE(node) });

  assert.equal((await write({ runtimeUser: 1 }, 'node-1')).status, 403);
  const { status: _, ...vmi } = await api.ok('GET', `${VMIS}/db`);
  await api.ok('PUT', `${VMIS}/db/status`, {
    body: { ...vmi, status: { nodeName: 'node-1', phase: 'Scheduled' } },
    user: asAccount('vmi-controller'),
  });
  assert.equal((await write({ runtimeUser: 1 }, 'node-1')).status, 200);
  const stolen = await write({ runtimeUser: 2 }, 'node-2');
  assert.equal(stolen.status, 403);
  assert.match(stolen.body.message, /no relationship found between node 'node-2' and this object/);
  assert.equal((await write({ nodeName: 'node-2' }, 'node-1')).status, 403);
  assert.equal((await write({ nodeName: null }, 'node-1')).status, 403);
  // A node may write neither the targets of a migration nor its existence.
  const migration = { migrationProgress: { migrationUid: 'm', phase: 'Copying' } };
  assert.equal((await write({ migrationState: { migrationUid: 'm' } }, 'node-1')).status, 403);
  assert.equal((await write({ evacuationNodeName: 'node-1' }, 'node-1')).status, 403);
  assert.equal((await write(migration, 'node-1')).status, 200);
  const decided = {
    migrationState: { migrationUid: 'm', targetNode: 'node-2' },
    evacuationNodeName: 'node-1',
  };
  await api.ok('PATCH', `${VMIS}/db/status`, { body: { status: decided } });
  assert.equal((await write({ runtimeUser: 3 }, 'node-1')).status, 200);
  const early = await write({ runtimeUser: 4 }, 'node-2');
  assert.match(early.body.message, /node node-2 can only update the status of instances that run on itself/);
  assert.equal((await write({ migrationState: { completed: true } }, 'node-1')).status, 403);
  assert.equal((await write({ migrationState: null }, 'node-1')).status, 403);
  assert.equal((await write({ evacuationNodeName: null }, 'node-1')).status, 403);
  assert.equal((await write(migration, 'node-2')).status, 403, 'the pod of the target decides');
  // Only the status.
  const patch = { body: { metadata: { labels: { a: 'b' } } }, user: NODE('node-1') };
  assert.equal((await api.call('PATCH', `${VMIS}/db`, patch)).status, 403);
});

test('a node may change only the finalizers of volumes that it holds', async () => {
  const volumes = '/api/v1/persistentvolumes';
  const createVolume = (name: string, node?: string) => {
    const annotations = node === undefined ? {} : { 'selfsame.io/volume-node': node };
    const csi = { driver: 'local.selfsame.io', volumeHandle: name };
    const spec = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], csi };
    const metadata = { name, annotations, finalizers: ['selfsame.io/volume-data'] };
    return api.ok('POST', volumes, { body: { apiVersion: 'v1', kind: 'PersistentVolume', metadata, spec } });
  };
  await createVolume('mine', 'node-1');
  await createVolume('other', 'node-2');
  await createVolume('everybodys');
  const nfs = { nfs: { server: 'x', path: '/' }, capacity: { storage: '1Gi' }, accessModes: ['ReadWriteMany'] };
  const foreign = { name: 'foreign', finalizers: ['example.com/a'] };
  await api.ok('POST', volumes, { body: { apiVersion: 'v1', kind: 'PersistentVolume', metadata: foreign, spec: nfs } });
  const patchVolume = async (name: string, body: Loose = { metadata: { finalizers: [] } }) =>
    (await api.call('PATCH', `${volumes}/${name}`, { body, user: NODE('node-1') })).status;
  assert.equal(await patchVolume('mine', { spec: { capacity: { storage: '2Gi' } } }), 403);
  assert.equal(
    await patchVolume('everybodys', { metadata: { annotations: { 'selfsame.io/volume-node': 'node-1' } } }),
    403,
  );
  assert.equal(await patchVolume('foreign'), 403);
  assert.equal(await patchVolume('mine', { metadata: { labels: { a: 'b' } } }), 403);
  assert.equal(await patchVolume('mine'), 403, 'other finalizers stay');
  const onlyProtection = { metadata: { finalizers: ['kubernetes.io/pv-protection'] } };
  assert.equal(await patchVolume('mine', onlyProtection), 200);
  assert.equal(await patchVolume('everybodys', onlyProtection), 200);
  assert.equal(await patchVolume('other', onlyProtection), 403);
});

test('a node may report only its own leftover as removed', async () => {
  const volumes = '/api/v1/persistentvolumes';
  const [HOME, LEFTOVER, OTHER] = ['selfsame.io/volume-node', 'selfsame.io/leftover-node', 'selfsame.io/incoming-node'];
  const finalizers = ['selfsame.io/volume-data', 'kubernetes.io/pv-protection'];
  const csi = { driver: 'local.selfsame.io', volumeHandle: 'moved' };
  const spec = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], csi };
  const annotations = { [HOME]: 'node-2', [LEFTOVER]: 'node-1', [OTHER]: 'node-3' };
  const body = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'moved', annotations, finalizers },
    spec,
  };
  await api.ok('POST', volumes, { body });
  const change = async (node: string, metadata: Loose) =>
    (await api.call('PATCH', `${volumes}/moved`, { body: { metadata }, user: NODE(node) })).status;
  const removed = { [LEFTOVER]: null };
  const refused: Record<string, [node: string, metadata: Loose]> = {
    'the home reports the leftover of another node': ['node-2', { annotations: removed }],
    'a third node reports it': ['node-3', { annotations: removed }],
    'the node makes itself the home': ['node-1', { annotations: { ...removed, [HOME]: 'node-1' } }],
    'the node removes the home': ['node-1', { annotations: { ...removed, [HOME]: null } }],
    'the node ends a move to another node': ['node-1', { annotations: { ...removed, [OTHER]: null } }],
    'the node adds an annotation': ['node-1', { annotations: { ...removed, a: 'b' } }],
    'the node names another node': ['node-1', { annotations: { [LEFTOVER]: 'node-3' } }],
    'the node adds a label': ['node-1', { annotations: removed, labels: { a: 'b' } }],
    'the node also removes the data finalizer': ['node-1', { annotations: removed, finalizers: finalizers.slice(1) }],
    'the node removes the data finalizer': ['node-1', { finalizers: finalizers.slice(1) }],
  };
  for (const [what, [node, metadata]] of Object.entries(refused)) {
    assert.equal(await change(node, metadata), 403, what);
  }
  assert.equal(await change('node-1', { annotations: removed }), 200);
  const { metadata } = await api.ok('GET', `${volumes}/moved`);
  assert.deepEqual([metadata.annotations, metadata.finalizers], [{ [HOME]: 'node-2', [OTHER]: 'node-3' }, finalizers]);
  assert.equal(await change('node-2', { finalizers: finalizers.slice(1) }), 200);
});

test('a node may complete only the copies that it makes', async () => {
  const volumes = '/api/v1/persistentvolumes';
  const PROTECTION = 'kubernetes.io/pv-protection';
  const [DATA, COPY] = ['selfsame.io/volume-data', 'selfsame.io/volume-copy'];
  const createVolume = (name: string, annotations: Loose) => {
    const csi = { driver: 'local.selfsame.io', volumeHandle: name };
    const spec = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], csi };
    const metadata = { name, annotations, finalizers: [DATA, COPY, PROTECTION] };
    return api.ok('POST', volumes, { body: { apiVersion: 'v1', kind: 'PersistentVolume', metadata, spec } });
  };
  const [home, copier] = ['selfsame.io/volume-node', 'selfsame.io/volume-copy-node'];
  await createVolume('copy-mine', { [home]: 'node-1', [copier]: 'node-1' });
  await createVolume('copy-shared', { [copier]: 'node-1' });
  await createVolume('copy-odd', { [home]: 'node-2', [copier]: 'node-1' });
  const setFinalizers = async (node: string, name: string, ...finalizers: (string | undefined)[]) =>
    (await api.call('PATCH', `${volumes}/${name}`, { body: { metadata: { finalizers } }, user: NODE(node) })).status;

  assert.equal(await setFinalizers('node-2', 'copy-mine', DATA, PROTECTION), 403);
  assert.equal(await setFinalizers('node-1', 'copy-mine', DATA, PROTECTION), 200);
  assert.equal(await setFinalizers('node-1', 'copy-mine', DATA, COPY, PROTECTION), 403, 'a finalizer cannot be added');
  // Every node reaches the data, but one node writes it.
  assert.equal(await setFinalizers('node-2', 'copy-shared', DATA, PROTECTION), 403);
  assert.equal(await setFinalizers('node-2', 'copy-shared', COPY, PROTECTION), 200);
  assert.equal(await setFinalizers('node-1', 'copy-shared', PROTECTION), 200);
  assert.equal(await setFinalizers('node-1', 'copy-odd', COPY, PROTECTION), 403, 'the data is on the other node');
  assert.equal(await setFinalizers('node-1', 'copy-odd', DATA), 403, 'other finalizers stay');
  assert.equal(await setFinalizers('node-1', 'copy-odd', DATA, PROTECTION), 200);
});

test('a node may change only the status of snapshots that it makes, their finalizer, and the note that a guest was not frozen', async () => {
  const contents = `${SNAPSHOTS}/volumesnapshotcontents`;
  const createContent = (name: string, node?: string, driver = 'local.selfsame.io') => {
    const annotations = node === undefined ? {} : { 'selfsame.io/snapshot-node': node };
    const metadata = { name, annotations, finalizers: ['selfsame.io/snapshot-data', 'example.com/a'] };
    const volumeSnapshotRef = { namespace: 'golden', name: 'x' };
    const spec = { deletionPolicy: 'Delete', driver, source: { volumeHandle: 'v' }, volumeSnapshotRef };
    const body = { apiVersion: 'snapshot.storage.k8s.io/v1', kind: 'VolumeSnapshotContent', metadata, spec };
    return api.ok('POST', contents, { body, user: asAccount('volume-snapshot-controller') });
  };
  await createContent('mine', 'node-1');
  await createContent('others', 'node-2');
  await createContent('nobodys');
  await createContent('foreign', 'node-1', 'example.com');
  const patch = async (path: string, body: Loose) =>
    (await api.call('PATCH', `${contents}/${path}`, { body, user: NODE('node-1') })).status;
  const complete = (snapshotHandle: string) => ({
    readyToUse: true,
    creationTime: 1,
    restoreSize: 5,
    snapshotHandle,
  });
  const status = { status: complete('node/node-1/mine') };
  const done = { metadata: { finalizers: ['example.com/a'] } };
  const want: [name: string, code: number][] = [
    ['mine', 200],
    ['others', 403],
    ['nobodys', 403],
    ['foreign', 403],
  ];
  for (const handle of ['node/node-2/mine', 'node/node-1/others', 'shared/others', 'h']) {
    assert.equal(await patch('mine/status', { status: complete(handle) }), 403, `${handle} is not data of the node`);
  }
  assert.equal(await patch('mine/status', { status: complete('shared/mine') }), 200);
  for (const [name, code] of want) assert.equal(await patch(`${name}/status`, status), code, name);
  for (const body of [
    { spec: { deletionPolicy: 'Retain' } },
    { metadata: { annotations: { 'selfsame.io/snapshot-node': 'node-2' } } },
    { metadata: { labels: { a: 'b' } } },
    { metadata: { finalizers: [] } },
    { metadata: { finalizers: ['selfsame.io/snapshot-data', 'example.com/a', 'example.com/b'] } },
    { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'gone', uid: 'u' }] } },
  ]) {
    assert.equal(await patch('mine', body), 403, JSON.stringify(body));
  }
  const notFrozen = (value: string | null, more: Loose = {}) => ({
    metadata: { annotations: { 'selfsame.io/snapshot-not-quiesced': value, ...more } },
  });
  for (const body of [
    notFrozen('maybe'),
    notFrozen('true', { 'example.com/a': 'b' }),
    notFrozen('true', { 'selfsame.io/snapshot-node': null }),
    { ...notFrozen('true'), spec: { deletionPolicy: 'Retain' } },
    { metadata: { ...notFrozen('true').metadata, finalizers: ['example.com/a'] } },
    { metadata: { ...notFrozen('true').metadata, labels: { a: 'b' } } },
  ]) {
    assert.equal(await patch('mine', body), 403, `only the one value is allowed: ${JSON.stringify(body)}`);
  }
  for (const [name, code] of want)
    assert.equal(await patch(name, notFrozen('true')), code, `the guest of ${name} was not frozen`);
  for (const body of [notFrozen(null), notFrozen('false')])
    assert.equal(await patch('mine', body), 403, 'the note cannot be removed');
  for (const [name, code] of want) assert.equal(await patch(name, done), code, name);
  const ownContent = await api.ok('GET', `${contents}/mine`);
  assert.deepEqual([ownContent.metadata.finalizers, ownContent.status], [['example.com/a'], status.status]);
});

test('existing definitions of volume snapshots are kept', async () => {
  const path = `${CRDS}/volumesnapshots.snapshot.storage.k8s.io`;
  const { spec } = await api.ok('GET', path);
  const versions = spec.versions.map((version: Loose) => ({ ...version, additionalPrinterColumns: [] }));
  await api.ok('PATCH', path, { body: { spec: { versions } } });
  await plane.settle();
  const { spec: now } = await api.ok('GET', path);
  assert.deepEqual(
    now.versions.map(({ additionalPrinterColumns }: Loose) => additionalPrinterColumns ?? []),
    [[]],
  );
  // A deleted definition is created again.
  await api.ok('DELETE', path);
  await plane.settle();
  const recreated = await api.ok('GET', path);
  assert.equal(recreated.spec.versions[0].additionalPrinterColumns.length, 8);
  const table = await api.ok('GET', `${SNAPSHOTS}/namespaces/golden/volumesnapshots`, {
    accept: 'application/json;as=Table;g=meta.k8s.io;v=v1',
  });
  assert.deepEqual(
    table.columnDefinitions.map(({ name }: Loose) => name),
    [
      'Name',
      'ReadyToUse',
      'SourcePVC',
      'SourceSnapshotContent',
      'RestoreSize',
      'SnapshotClass',
      'SnapshotContent',
      'CreationTime',
      'Age',
    ],
  );
});

test('the roles of a namespace apply to its VMs, too', async () => {
  const bindRole = (role: string) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: role },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: role }],
  });
  for (const role of ['edit', 'view'])
    await api.ok('POST', `${RBAC}/namespaces/golden/rolebindings`, { body: bindRole(role) });
  await plane.settle();
  const isAllowed = async (user: string, verb: string, group: string, resource: string, subresource?: string) => {
    const resourceAttributes = { namespace: 'golden', verb, group, resource, subresource, name: 'db' };
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user, groups: ['system:authenticated'], resourceAttributes },
    };
    return (await api.ok('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { body })).status.allowed;
  };
  const subresources = 'subresources.kubevirt.io';
  assert.equal(await isAllowed('edit', 'create', 'kubevirt.io', 'virtualmachines'), true);
  assert.equal(await isAllowed('edit', 'update', subresources, 'virtualmachines', 'start'), true);
  assert.equal(await isAllowed('edit', 'delete', 'kubevirt.io', 'virtualmachineinstancemigrations'), true);
  assert.equal(await isAllowed('view', 'watch', 'kubevirt.io', 'virtualmachineinstancemigrations'), true);
  assert.equal(await isAllowed('view', 'create', 'kubevirt.io', 'virtualmachineinstancemigrations'), false);
  assert.equal(await isAllowed('edit', 'get', subresources, 'virtualmachineinstances', 'console'), true);
  assert.equal(await isAllowed('edit', 'update', 'identity.selfsame.io', 'virtualmachineidentities'), false);
  assert.equal(await isAllowed('edit', 'create', 'snapshot.kubevirt.io', 'virtualmachinesnapshots'), true);
  assert.equal(await isAllowed('edit', 'create', 'snapshot.kubevirt.io', 'virtualmachinerestores'), true);
  assert.equal(await isAllowed('edit', 'delete', 'snapshot.storage.k8s.io', 'volumesnapshots'), true);
  assert.equal(await isAllowed('edit', 'get', 'snapshot.storage.k8s.io', 'volumesnapshotcontents'), false);
  assert.equal(await isAllowed('view', 'watch', 'snapshot.kubevirt.io', 'virtualmachinesnapshotcontents'), true);
  assert.equal(await isAllowed('view', 'create', 'snapshot.kubevirt.io', 'virtualmachinesnapshots'), false);
  assert.equal(await isAllowed('view', 'list', 'kubevirt.io', 'virtualmachineinstances'), true);
  assert.equal(await isAllowed('view', 'get', subresources, 'virtualmachineinstances', 'console'), false);
  assert.equal(await isAllowed('view', 'delete', 'kubevirt.io', 'virtualmachines'), false);
  assert.equal(await isAllowed('nobody', 'get', subresources, 'version'), true);
  assert.equal(await isAllowed('nobody', 'get', 'kubevirt.io', 'virtualmachines'), false);
});

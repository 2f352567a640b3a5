/** Attempts to get around delete protection through the objects that the VM needs or that protect it. */
import assert from 'node:assert/strict';
import {
  STRATEGIC,
  A_WHILE_MS,
  type Scene,
  type Row,
  BY_MARK,
  NOT_WRITTEN,
  del,
  patch,
  claimOf,
  volumeOf,
  refused,
  harmless,
  vms,
  vmis,
  pods,
  claims,
  namespace,
  snapshots,
  restores,
  ours,
} from '#test/bypass/scene.ts';
import { CRD, jsonPatch, labelPatch, MARK, RECORD_CRD } from '#test/support/protection.ts';
import { aRestore, aSnapshot } from '#test/support/snapshots.ts';
import type { Loose } from '#test/support/test-api.ts';

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const POLICY = `${ADMISSION}/validatingadmissionpolicies/kubevirt-vm-deletion-protection`;
const BINDING = `${ADMISSION}/validatingadmissionpolicybindings/kubevirt-vm-deletion-protection`;
const SYSTEM = '/api/v1/namespaces/selfsame-system';
const OURS = 'labelSelector=app.kubernetes.io%2Fmanaged-by%3Dselfsame-operator';
const MARK_PATH = `/metadata/annotations/${MARK.replace('/', '~1')}`;
const RESTORED = 'the operator restores it; a user with the right to change it could remove the label as well';
const RECREATED = 'only the VM is protected; its instance and pod are created again';
const DATA_AT_RISK = 'the owner of the new claim could overwrite the data';
const REBIND_REFUSED =
  /^403 .*cannot be bound to another claim: it holds a disk of the protected VirtualMachine shop\/db/;
const RELEASE_REFUSED = /^403 .*cannot be released: it holds a disk of the protected VirtualMachine shop\/db/;
const CONTROLLER_WRITES_MARKS = 'only the protection controller writes marks';

export const dependencies: Record<string, Row> = {
  'delete its namespace': refused(BY_MARK, del(namespace)),
  'delete its namespace with a grace period of 0': refused(
    BY_MARK,
    del(namespace, { body: { gracePeriodSeconds: 0 } }),
  ),
  'delete its namespace with propagation policy Orphan': refused(BY_MARK, del(`${namespace}?propagationPolicy=Orphan`)),
  'delete all namespaces': refused('there is no such verb', del('/api/v1/namespaces'), /^405 /),
  'remove the finalizers of its namespace, then delete it': refused(BY_MARK, (scene) =>
    scene.inOrder(
      () => scene.replace(namespace, ({ spec }) => (spec.finalizers = []), {}, `${namespace}/finalize`),
      () => scene.call('DELETE', namespace),
    ),
  ),
  'set the phase of its namespace to Terminating': harmless(
    'only a deletionTimestamp ends a namespace',
    patch(`${namespace}/status`, { body: { status: { phase: 'Terminating' } } }),
    patch(`${namespace}/status`, { body: { status: { phase: 'Active' } } }),
  ),
  'set a deletionTimestamp on its namespace': refused(
    NOT_WRITTEN,
    patch(namespace, { body: { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } } }),
    /^422 .*field is immutable$/,
  ),
  'delete its claim': refused(BY_MARK, del(claimOf)),
  'delete its claim with a grace period of 0': refused(BY_MARK, del(claimOf, { body: { gracePeriodSeconds: 0 } })),
  'delete all claims': refused(BY_MARK, del(claims)),
  'delete all claims of that name': refused(BY_MARK, del(`${claims}?fieldSelector=metadata.name%3Ddb`)),
  'remove the finalizers of its claim, then delete it': refused(BY_MARK, (scene) =>
    scene.inOrder(
      () => scene.call('PATCH', scene.claim, { body: { metadata: { finalizers: null } } }),
      () => scene.call('DELETE', scene.claim),
    ),
  ),
  'bind its claim to another volume': refused(
    'the volume of a bound claim cannot change',
    patch(claimOf, { body: { spec: { volumeName: 'x' } } }),
    /^422 /,
  ),
  'set the phase of its claim to Lost, then delete it': refused(BY_MARK, (scene) =>
    scene.inOrder(
      () => scene.call('PATCH', `${scene.claim}/status`, { body: { status: { phase: 'Lost' } } }),
      () => scene.call('DELETE', scene.claim),
    ),
  ),
  'delete its volume': refused(BY_MARK, del(volumeOf)),
  'delete all volumes': refused(BY_MARK, del('/api/v1/persistentvolumes')),
  'remove the finalizers of its volume, then delete it': refused(BY_MARK, (scene) =>
    scene.inOrder(
      () => scene.call('PATCH', scene.volume, { body: { metadata: { finalizers: null } } }),
      () => scene.call('DELETE', scene.volume),
    ),
  ),
  'remove the claimRef of its volume': refused(
    DATA_AT_RISK,
    patch(volumeOf, { body: { spec: { claimRef: null } } }),
    REBIND_REFUSED,
  ),
  'bind its volume to another claim': refused(
    DATA_AT_RISK,
    patch(volumeOf, { body: { spec: { claimRef: { name: 'other', uid: 'x' } } } }),
    REBIND_REFUSED,
  ),
  'set the phase of its volume to Released, then delete it': refused(BY_MARK, (scene) =>
    scene.inOrder(
      () => scene.call('PATCH', `${scene.volume}/status`, { body: { status: { phase: 'Released' } } }),
      () => scene.call('DELETE', scene.volume),
    ),
  ),
  'set the phase of its volume to Released': refused(
    'provisioners delete the data of released volumes',
    patch((scene) => `${scene.volume}/status`, { body: { status: { phase: 'Released' } } }),
    RELEASE_REFUSED,
  ),
  'remove the phase of its volume': refused(
    'the volume is bound',
    patch((scene) => `${scene.volume}/status`, { body: { status: null } }),
    RELEASE_REFUSED,
  ),
  'set the status message of its volume': harmless(
    'the volume stays bound',
    patch((scene) => `${scene.volume}/status`, { body: { status: { message: 'x' } } }),
  ),
  'set the reclaim policy of its volume to Delete': harmless(
    'the claim is kept',
    patch(volumeOf, { body: { spec: { persistentVolumeReclaimPolicy: 'Delete' } } }),
  ),
  'delete the CRD of VMs': refused(BY_MARK, del(CRD)),
  'delete all CRDs, selected by the name of that of VMs': refused(
    BY_MARK,
    del(
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldSelector=metadata.name%3Dvirtualmachines.kubevirt.io',
    ),
  ),
  'remove the finalizers of the CRD of VMs, then delete it': refused(BY_MARK, (scene) =>
    scene.inOrder(
      () => scene.call('PATCH', CRD, { body: { metadata: { finalizers: null } } }),
      () => scene.call('DELETE', CRD),
    ),
  ),
  'make the CRD of VMs serve no version': harmless(RESTORED, async (scene) =>
    scene.replace(CRD, ({ spec }) => spec.versions.forEach((version: Loose) => (version.served = false))),
  ),
};

const MARKED_OBJECTS: Record<string, (scene: Scene) => string> = {
  'its namespace': () => namespace,
  'its claim': claimOf,
  'its volume': volumeOf,
  'the CRD of VMs': () => CRD,
  'the CRD of identity records': () => RECORD_CRD,
};
const WITHOUT_MARK = { metadata: { annotations: { [MARK]: null } } };
const MARK_REFUSED = /^403 .*selfsame\.io\/protected-vms is written by Selfsame only$/;
export const marks: Record<string, Row> = Object.fromEntries(
  Object.entries(MARKED_OBJECTS).flatMap(([what, url]): [string, Row][] => [
    [
      `remove the mark on ${what}, by merge patch`,
      refused(CONTROLLER_WRITES_MARKS, patch(url, { body: WITHOUT_MARK }), MARK_REFUSED),
    ],
    [
      `remove the mark on ${what}, by JSON patch`,
      refused(CONTROLLER_WRITES_MARKS, patch(url, jsonPatch({ op: 'remove', path: MARK_PATH })), MARK_REFUSED),
    ],
    [
      `empty the mark on ${what}, by replace`,
      refused(
        CONTROLLER_WRITES_MARKS,
        (s) => s.replace(url(s), ({ metadata }) => (metadata.annotations[MARK] = '')),
        MARK_REFUSED,
      ),
    ],
  ]),
);
export const moreMarks: Record<string, Row> = {
  'remove the mark on its namespace, by strategic merge patch': refused(
    CONTROLLER_WRITES_MARKS,
    patch(namespace, { body: WITHOUT_MARK, contentType: STRATEGIC }),
    MARK_REFUSED,
  ),
  'remove the mark on its claim, as the restore controller': refused(
    CONTROLLER_WRITES_MARKS,
    patch(claimOf, { body: WITHOUT_MARK, ...ours('restore-controller') }),
    MARK_REFUSED,
  ),
  'remove the mark on its namespace, through finalize': refused(
    CONTROLLER_WRITES_MARKS,
    (scene) =>
      scene.replace(namespace, ({ metadata }) => delete metadata.annotations[MARK], {}, `${namespace}/finalize`),
    MARK_REFUSED,
  ),
  'remove the mark on its namespace, through its status': refused(
    CONTROLLER_WRITES_MARKS,
    patch(`${namespace}/status`, { body: WITHOUT_MARK }),
    MARK_REFUSED,
  ),
  'remove the mark on its volume, through its status': refused(
    CONTROLLER_WRITES_MARKS,
    patch((scene) => `${scene.volume}/status`, { body: WITHOUT_MARK }),
    MARK_REFUSED,
  ),
};

export const guards: Record<string, Row> = {
  'delete the policy': harmless(RESTORED, del(POLICY)),
  'delete the binding': harmless(RESTORED, del(BINDING)),
  'make the binding only warn': harmless(RESTORED, patch(BINDING, { body: { spec: { validationActions: ['Warn'] } } })),
  'limit the binding to another namespace': harmless(
    RESTORED,
    patch(BINDING, {
      body: { spec: { matchResources: { namespaceSelector: { matchLabels: { never: 'so' } } } } },
    }),
  ),
  'make the policy ignore failures': harmless(RESTORED, patch(POLICY, { body: { spec: { failurePolicy: 'Ignore' } } })),
  'make the policy allow everything': harmless(
    RESTORED,
    patch(POLICY, { body: { spec: { validations: [{ expression: 'true' }] } } }),
  ),
  'add a match condition to the policy that is never true': harmless(
    RESTORED,
    patch(POLICY, { body: { spec: { matchConditions: [{ name: 'never', expression: 'false' }] } } }),
  ),
  'delete all policies and bindings': harmless(RESTORED, (scene) =>
    scene.inOrder(
      () => scene.call('DELETE', `${ADMISSION}/validatingadmissionpolicybindings`),
      () => scene.call('DELETE', `${ADMISSION}/validatingadmissionpolicies`),
    ),
  ),
  'delete our webhooks': harmless(RESTORED, (scene) =>
    scene.inOrder(
      () => scene.call('DELETE', `${ADMISSION}/validatingwebhookconfigurations`),
      () => scene.call('DELETE', `${ADMISSION}/mutatingwebhookconfigurations`),
    ),
  ),
  'delete the service account of the protection controller': harmless(
    RESTORED,
    del(`${SYSTEM}/serviceaccounts/protection-controller`),
  ),
  'delete the roles of the protection controller': harmless(RESTORED, (scene) =>
    scene.inOrder(
      () => scene.call('DELETE', `${RBAC}/clusterrolebindings/selfsame:protection-controller`),
      () => scene.call('DELETE', `${RBAC}/clusterroles/selfsame:protection-controller`),
    ),
  ),
  'delete the roles of all our components, including the operator': harmless(
    'policies and marks work without our components; the next start restores the roles',
    (scene) =>
      scene.inOrder(
        () => scene.call('DELETE', `${RBAC}/clusterrolebindings?${OURS}`),
        () => scene.call('DELETE', `${RBAC}/clusterroles?${OURS}`),
      ),
    ({ plane }) => plane.restartServer(),
  ),
  'delete the KubeVirt object': harmless(
    RESTORED,
    del('/apis/kubevirt.io/v1/namespaces/selfsame-system/kubevirts/kubevirt'),
  ),
  'delete the namespace of our components': harmless(
    'policies and marks are not in that namespace; the next start creates it again',
    del(SYSTEM),
    ({ plane }) => plane.restartServer(),
  ),
  'delete the APIService of kubevirt.io': harmless(
    'the API server registers its own kinds again',
    del('/apis/apiregistration.k8s.io/v1/apiservices/v1.kubevirt.io'),
  ),
};

export const life: Record<string, Row> = {
  'delete its instance': harmless(RECREATED, del(`${vmis}/db`)),
  'delete all instances with a grace period of 0': harmless(RECREATED, del(vmis, { body: { gracePeriodSeconds: 0 } })),
  'delete its pod': harmless(RECREATED, del(pods)),
  'evict its pod': {
    ...harmless(RECREATED, async (scene) => {
      const { name } = (await scene.call('GET', pods)).body.items[0].metadata;
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'shop' } };
      return await scene.call('POST', `${pods}/${name}/eviction`, { body: eviction });
    }),
  },
  'delete the storage classes': harmless(RESTORED, del('/apis/storage.k8s.io/v1/storageclasses')),
  'delete its node': harmless('the node agent registers it again', async (scene) => {
    const { nodeName } = (await scene.call('GET', `${vmis}/db`)).body.status;
    return await scene.call('DELETE', `/api/v1/nodes/${nodeName}`);
  }),
  'restore it in place': harmless('the user requested the older disk; the VM stays the same', async (scene) => {
    const { api } = scene.plane.server;
    const replaced = scene.volume;
    await api.ok('POST', snapshots, { body: aSnapshot('before', 'db') });
    await scene.plane.settle();
    const policy = { volumeRestorePolicy: 'InPlace', targetReadinessPolicy: 'StopTarget' };
    const answer = await scene.call('POST', restores, { body: aRestore('back', 'db', 'before', policy) });
    await scene.plane.advance(A_WHILE_MS);
    assert.equal((await api.ok('GET', `${restores}/back`)).status.complete, true);
    assert.equal((await scene.call('GET', replaced)).status, 404, 'the replaced volume is deleted');
    return answer;
  }),
  'restore its snapshot to another VM, then delete that VM': harmless(
    'the other VM has its own disks',
    async (scene) => {
      const { api } = scene.plane.server;
      await api.ok('POST', restores, { body: aRestore('copy', 'copy', 'before') });
      await scene.plane.advance(A_WHILE_MS);
      await api.ok('PATCH', `${vms}/copy`, { body: labelPatch(null) });
      return await scene.call('DELETE', `${vms}/copy`);
    },
  ),
  'delete its snapshots and restores': harmless('the VM and its disks do not depend on them', (scene) =>
    scene.inOrder(
      () => scene.call('DELETE', restores),
      () => scene.call('DELETE', snapshots),
    ),
  ),
};

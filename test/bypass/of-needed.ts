/** Ways around delete protection that go for what the VM needs, or for what protects it. */
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
import { CRD, json, labelled, MARK, RECORD_CRD } from '#test/support/protection.ts';
import { aRestore, aSnapshot } from '#test/support/snapshots.ts';
import type { Loose } from '#test/support/test-api.ts';

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const POLICY = `${ADMISSION}/validatingadmissionpolicies/kubevirt-vm-deletion-protection`;
const BINDING = `${ADMISSION}/validatingadmissionpolicybindings/kubevirt-vm-deletion-protection`;
const SYSTEM = '/api/v1/namespaces/selfsame-system';
const OURS = 'labelSelector=app.kubernetes.io%2Fmanaged-by%3Dselfsame-operator';
const MARK_PATH = `/metadata/annotations/${MARK.replace('/', '~1')}`;
const PUT_BACK = 'the operator puts it back; who may change it may do anything, and needs no way around';
const ITS_LIFE = 'only the wish is protected: what follows from it comes again';
const STAYS_WITH_CLAIM = 'whoever gets the volume may do with the data what they like';
const GIVEN_AWAY = /^403 .*cannot be bound to another claim: it holds a disk of the protected VirtualMachine shop\/db/;
const RELEASED = /^403 .*cannot be released: it holds a disk of the protected VirtualMachine shop\/db/;
const OURS_ALONE = 'only the protection controller writes marks';

export const neededByIt: Record<string, Row> = {
  'delete its namespace': refused(BY_MARK, del(namespace)),
  'delete its namespace with no time to end': refused(BY_MARK, del(namespace, { body: { gracePeriodSeconds: 0 } })),
  'delete its namespace, orphaning': refused(BY_MARK, del(`${namespace}?propagationPolicy=Orphan`)),
  'delete all namespaces': refused('there is no such verb', del('/api/v1/namespaces'), /^405 /),
  'a namespace without finalizers, then delete': refused(BY_MARK, (scene) =>
    scene.inOrder(
      () => scene.replace(namespace, ({ spec }) => (spec.finalizers = []), {}, `${namespace}/finalize`),
      () => scene.call('DELETE', namespace),
    ),
  ),
  'a namespace that says it is terminating': harmless(
    'a namespace ends by its deletionTimestamp',
    patch(`${namespace}/status`, { body: { status: { phase: 'Terminating' } } }),
    patch(`${namespace}/status`, { body: { status: { phase: 'Active' } } }),
  ),
  'a deletionTimestamp on its namespace': refused(
    NOT_WRITTEN,
    patch(namespace, { body: { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } } }),
    /^422 .*field is immutable$/,
  ),
  'delete its claim': refused(BY_MARK, del(claimOf)),
  'delete its claim with no time to end': refused(BY_MARK, del(claimOf, { body: { gracePeriodSeconds: 0 } })),
  'delete all claims': refused(BY_MARK, del(claims)),
  'delete all claims of that name': refused(BY_MARK, del(`${claims}?fieldSelector=metadata.name%3Ddb`)),
  'a claim without finalizers, then delete': refused(BY_MARK, (scene) =>
    scene.inOrder(
      () => scene.call('PATCH', scene.claim, { body: { metadata: { finalizers: null } } }),
      () => scene.call('DELETE', scene.claim),
    ),
  ),
  'a claim of another volume': refused(
    'a bound claim stays so',
    patch(claimOf, { body: { spec: { volumeName: 'x' } } }),
    /^422 /,
  ),
  'a claim that says it is lost, then delete': refused(BY_MARK, (scene) =>
    scene.inOrder(
      () => scene.call('PATCH', `${scene.claim}/status`, { body: { status: { phase: 'Lost' } } }),
      () => scene.call('DELETE', scene.claim),
    ),
  ),
  'delete its volume': refused(BY_MARK, del(volumeOf)),
  'delete all volumes': refused(BY_MARK, del('/api/v1/persistentvolumes')),
  'a volume without finalizers, then delete': refused(BY_MARK, (scene) =>
    scene.inOrder(
      () => scene.call('PATCH', scene.volume, { body: { metadata: { finalizers: null } } }),
      () => scene.call('DELETE', scene.volume),
    ),
  ),
  'a volume that forgets its claim': refused(
    STAYS_WITH_CLAIM,
    patch(volumeOf, { body: { spec: { claimRef: null } } }),
    GIVEN_AWAY,
  ),
  'a volume that is given to another claim': refused(
    STAYS_WITH_CLAIM,
    patch(volumeOf, { body: { spec: { claimRef: { name: 'other', uid: 'x' } } } }),
    GIVEN_AWAY,
  ),
  'a volume that says it is released, then delete': refused(BY_MARK, (scene) =>
    scene.inOrder(
      () => scene.call('PATCH', `${scene.volume}/status`, { body: { status: { phase: 'Released' } } }),
      () => scene.call('DELETE', scene.volume),
    ),
  ),
  'a volume that says it is released': refused(
    'provisioners believe it, and delete the data before the volume',
    patch((scene) => `${scene.volume}/status`, { body: { status: { phase: 'Released' } } }),
    RELEASED,
  ),
  'a volume that has no phase': refused(
    'it is bound',
    patch((scene) => `${scene.volume}/status`, { body: { status: null } }),
    RELEASED,
  ),
  'a volume whose status says something': harmless(
    'what is bound stays so',
    patch((scene) => `${scene.volume}/status`, { body: { status: { message: 'x' } } }),
  ),
  'a volume that is to be deleted with its claim': harmless(
    'the claim stays',
    patch(volumeOf, { body: { spec: { persistentVolumeReclaimPolicy: 'Delete' } } }),
  ),
  'delete the definition of VMs': refused(BY_MARK, del(CRD)),
  'delete all definitions of kinds': refused(
    BY_MARK,
    del(
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldSelector=metadata.name%3Dvirtualmachines.kubevirt.io',
    ),
  ),
  'a definition without finalizers, then delete': refused(BY_MARK, (scene) =>
    scene.inOrder(
      () => scene.call('PATCH', CRD, { body: { metadata: { finalizers: null } } }),
      () => scene.call('DELETE', CRD),
    ),
  ),
  'a definition that serves no version': harmless(PUT_BACK, async (scene) =>
    scene.replace(CRD, ({ spec }) => spec.versions.forEach((version: Loose) => (version.served = false))),
  ),
};

const MARKED: Record<string, (scene: Scene) => string> = {
  'its namespace': () => namespace,
  'its claim': claimOf,
  'its volume': volumeOf,
  'the definition of VMs': () => CRD,
  'the definition of records': () => RECORD_CRD,
};
const UNMARKED = { metadata: { annotations: { [MARK]: null } } };
const IS_OURS = /^403 .*selfsame\.io\/protected-vms is written by Selfsame only$/;
export const marks: Record<string, Row> = Object.fromEntries(
  Object.entries(MARKED).flatMap(([what, url]): [string, Row][] => [
    [`no mark on ${what}, by merge patch`, refused(OURS_ALONE, patch(url, { body: UNMARKED }), IS_OURS)],
    [
      `no mark on ${what}, by JSON patch`,
      refused(OURS_ALONE, patch(url, json({ op: 'remove', path: MARK_PATH })), IS_OURS),
    ],
    [
      `an empty mark on ${what}, by replace`,
      refused(OURS_ALONE, (s) => s.replace(url(s), ({ metadata }) => (metadata.annotations[MARK] = '')), IS_OURS),
    ],
  ]),
);
export const moreMarks: Record<string, Row> = {
  'no mark on its namespace, by strategic merge patch': refused(
    OURS_ALONE,
    patch(namespace, { body: UNMARKED, contentType: STRATEGIC }),
    IS_OURS,
  ),
  'no mark on its claim, as the restore controller': refused(
    OURS_ALONE,
    patch(claimOf, { body: UNMARKED, ...ours('restore-controller') }),
    IS_OURS,
  ),
  'no mark on its namespace, through finalize': refused(
    OURS_ALONE,
    (scene) =>
      scene.replace(namespace, ({ metadata }) => delete metadata.annotations[MARK], {}, `${namespace}/finalize`),
    IS_OURS,
  ),
  'no mark on its namespace, through its status': refused(
    OURS_ALONE,
    patch(`${namespace}/status`, { body: UNMARKED }),
    IS_OURS,
  ),
  'no mark on its volume, through its status': refused(
    OURS_ALONE,
    patch((scene) => `${scene.volume}/status`, { body: UNMARKED }),
    IS_OURS,
  ),
};

export const guards: Record<string, Row> = {
  'the policy is deleted': harmless(PUT_BACK, del(POLICY)),
  'the binding is deleted': harmless(PUT_BACK, del(BINDING)),
  'the binding only warns': harmless(PUT_BACK, patch(BINDING, { body: { spec: { validationActions: ['Warn'] } } })),
  'the binding is for another namespace': harmless(
    PUT_BACK,
    patch(BINDING, {
      body: { spec: { matchResources: { namespaceSelector: { matchLabels: { never: 'so' } } } } },
    }),
  ),
  'the policy ignores failures': harmless(PUT_BACK, patch(POLICY, { body: { spec: { failurePolicy: 'Ignore' } } })),
  'the policy allows everything': harmless(
    PUT_BACK,
    patch(POLICY, { body: { spec: { validations: [{ expression: 'true' }] } } }),
  ),
  'the policy is for some conditions only': harmless(
    PUT_BACK,
    patch(POLICY, { body: { spec: { matchConditions: [{ name: 'never', expression: 'false' }] } } }),
  ),
  'all policies and bindings are deleted': harmless(PUT_BACK, (scene) =>
    scene.inOrder(
      () => scene.call('DELETE', `${ADMISSION}/validatingadmissionpolicybindings`),
      () => scene.call('DELETE', `${ADMISSION}/validatingadmissionpolicies`),
    ),
  ),
  'our webhooks are deleted': harmless(PUT_BACK, (scene) =>
    scene.inOrder(
      () => scene.call('DELETE', `${ADMISSION}/validatingwebhookconfigurations`),
      () => scene.call('DELETE', `${ADMISSION}/mutatingwebhookconfigurations`),
    ),
  ),
  'the account of the protection controller is deleted': harmless(
    PUT_BACK,
    del(`${SYSTEM}/serviceaccounts/protection-controller`),
  ),
  'the rights of the protection controller are deleted': harmless(PUT_BACK, (scene) =>
    scene.inOrder(
      () => scene.call('DELETE', `${RBAC}/clusterrolebindings/selfsame:protection-controller`),
      () => scene.call('DELETE', `${RBAC}/clusterroles/selfsame:protection-controller`),
    ),
  ),
  'the rights of all of our parts are deleted, of the operator too': harmless(
    'policies and marks hold without us; the next start brings the rights back',
    (scene) =>
      scene.inOrder(
        () => scene.call('DELETE', `${RBAC}/clusterrolebindings?${OURS}`),
        () => scene.call('DELETE', `${RBAC}/clusterroles?${OURS}`),
      ),
    ({ plane }) => plane.restartServer(),
  ),
  'the KubeVirt object is deleted': harmless(
    PUT_BACK,
    del('/apis/kubevirt.io/v1/namespaces/selfsame-system/kubevirts/kubevirt'),
  ),
  'the namespace of our own parts is deleted': harmless(
    'policies and marks are of no namespace; the next start brings it back',
    del(SYSTEM),
    ({ plane }) => plane.restartServer(),
  ),
  'the API of kubevirt.io is deleted': harmless(
    'the API server lists its own kinds again',
    del('/apis/apiregistration.k8s.io/v1/apiservices/v1.kubevirt.io'),
  ),
};

export const life: Record<string, Row> = {
  'its instance is deleted': harmless(ITS_LIFE, del(`${vmis}/db`)),
  'all instances are deleted with no time to end': harmless(ITS_LIFE, del(vmis, { body: { gracePeriodSeconds: 0 } })),
  'its pod is deleted': harmless(ITS_LIFE, del(pods)),
  'its pod is evicted': {
    ...harmless(ITS_LIFE, async (scene) => {
      const { name } = (await scene.call('GET', pods)).body.items[0].metadata;
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'shop' } };
      return await scene.call('POST', `${pods}/${name}/eviction`, { body: eviction });
    }),
  },
  'the storage classes are deleted': harmless(PUT_BACK, del('/apis/storage.k8s.io/v1/storageclasses')),
  'its node is deleted': harmless('its agent brings it back', async (scene) => {
    const { nodeName } = (await scene.call('GET', `${vmis}/db`)).body.status;
    return await scene.call('DELETE', `/api/v1/nodes/${nodeName}`);
  }),
  'it is restored in place': harmless('somebody asked for what was; it stays the VM that it is', async (scene) => {
    const { api } = scene.plane.server;
    const replaced = scene.volume;
    await api.ok('POST', snapshots, { body: aSnapshot('before', 'db') });
    await scene.plane.settle();
    const policy = { volumeRestorePolicy: 'InPlace', targetReadinessPolicy: 'StopTarget' };
    const answer = await scene.call('POST', restores, { body: aRestore('back', 'db', 'before', policy) });
    await scene.plane.advance(A_WHILE_MS);
    assert.equal((await api.ok('GET', `${restores}/back`)).status.complete, true);
    assert.equal((await scene.call('GET', replaced)).status, 404, 'what it had before is let go');
    return answer;
  }),
  'its snapshot is restored into another VM, which is deleted': harmless(
    'that one has disks of its own',
    async (scene) => {
      const { api } = scene.plane.server;
      await api.ok('POST', restores, { body: aRestore('copy', 'copy', 'before') });
      await scene.plane.advance(A_WHILE_MS);
      await api.ok('PATCH', `${vms}/copy`, { body: labelled(null) });
      return await scene.call('DELETE', `${vms}/copy`);
    },
  ),
  'its snapshots and restores are deleted': harmless('they own nothing of it', (scene) =>
    scene.inOrder(
      () => scene.call('DELETE', restores),
      () => scene.call('DELETE', snapshots),
    ),
  ),
};

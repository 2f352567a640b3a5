/** Attempts to get around delete protection through the VM itself. */
import assert from 'node:assert/strict';
import { body, int, text } from '#engine/protobuf/testing/wire-writer.ts';
import {
  STRATEGIC,
  A_WHILE_MS,
  almighty,
  ours,
  engines,
  VM,
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
  namespace,
  configMaps,
} from '#test/bypass/scene.ts';
import { jsonPatch, LABEL, labelPatch } from '#test/support/protection.ts';
import type { TestResponse, CallOptions, Loose } from '#test/support/test-api.ts';

const ALPHA = '/apis/kubevirt.io/v1alpha3/namespaces/shop/virtualmachines';
const APPLY = 'application/apply-patch+yaml';
const BY_POLICY = 'the policy checks the stored object and ignores the delete options';
const NO_EXCEPTIONS = 'the policy has no exceptions, neither for groups nor for our own components';
const NOT_SERVED = 'we do not serve this version; the policy also names it, for clusters that do';
const NO_ROUTE = 'a VM has no such subresource';

const IMMUTABLE = /^422 .*field is immutable$/;

export const verbs: Record<string, Row> = {
  'delete by name': refused(BY_POLICY, del(VM)),
  'delete as a dry run': refused('a dry run reports the same result', del(`${VM}?dryRun=All`)),
  'delete with a grace period of 0': refused(BY_POLICY, del(VM, { body: { gracePeriodSeconds: 0 } })),
  'delete with a grace period of 0 in the query': refused(BY_POLICY, del(`${VM}?gracePeriodSeconds=0`)),
  'delete with propagation policy Orphan': refused(BY_POLICY, del(VM, { body: { propagationPolicy: 'Orphan' } })),
  'delete with the deprecated option orphanDependents': refused(
    BY_POLICY,
    del(VM, { body: { orphanDependents: true } }),
  ),
  'delete in the foreground': refused(BY_POLICY, del(`${VM}?propagationPolicy=Foreground`)),
  'delete in the background': refused(BY_POLICY, del(VM, { body: { propagationPolicy: 'Background' } })),
  'delete with its uid and revision as preconditions': refused(BY_POLICY, async (scene) => {
    const { uid, resourceVersion } = (await scene.call('GET', VM)).body.metadata;
    return await scene.call('DELETE', VM, { body: { preconditions: { uid, resourceVersion } } });
  }),
  'delete with the option for unreadable objects': refused(
    BY_POLICY,
    del(`${VM}?ignoreStoreReadErrorWithClusterBreakingPotential=true`),
  ),
  'delete with options in YAML': refused(
    BY_POLICY,
    del(VM, { contentType: 'application/yaml', body: 'kind: DeleteOptions\napiVersion: v1\ngracePeriodSeconds: 0\n' }),
  ),
  'delete with options in protobuf': refused(
    BY_POLICY,
    del(VM, {
      contentType: 'application/vnd.kubernetes.protobuf',
      body: body('v1', 'DeleteOptions', int(1, 0), text(4, 'Background')),
    }),
  ),
  'delete through another version of the kind': refused(NOT_SERVED, del(`${ALPHA}/db`), /^404 /),
  'delete of all VMs of the namespace': refused(BY_POLICY, del(vms)),
  'delete of all VMs through another version': refused(NOT_SERVED, del(ALPHA), /^404 /),
  'delete of all VMs that have the label': refused(BY_POLICY, del(`${vms}?labelSelector=${LABEL}%3Dtrue`)),
  'delete of all VMs of that name': refused(BY_POLICY, del(`${vms}?fieldSelector=metadata.name%3Ddb`)),
  'delete of all VMs, one page at a time': refused(BY_POLICY, del(`${vms}?limit=1`)),
  'delete of all VMs with a grace period of 0': refused(BY_POLICY, del(vms, { body: { gracePeriodSeconds: 0 } })),
  'delete of all VMs of all namespaces': refused(
    'there is no such verb',
    del('/apis/kubevirt.io/v1/virtualmachines'),
    /^405 /,
  ),
  'delete of the status': refused('there is no such verb', del(`${VM}/status`), /^40[45] /),
  'delete of the scale': refused(NO_ROUTE, del(`${VM}/scale`), /^404 /),
  'delete of the finalizers': refused(NO_ROUTE, del(`${VM}/finalizers`), /^404 /),
  'delete through the aggregated API': refused(
    NO_ROUTE,
    del('/apis/subresources.kubevirt.io/v1/namespaces/shop/virtualmachines/db'),
    /^40[45] /,
  ),
};

export const writes: Record<string, Row> = {
  'set a deletionTimestamp by merge patch': refused(
    NOT_WRITTEN,
    patch(VM, { body: { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } } }),
    IMMUTABLE,
  ),
  'set a deletionTimestamp by JSON patch': refused(
    NOT_WRITTEN,
    patch(VM, jsonPatch({ op: 'add', path: '/metadata/deletionTimestamp', value: '2026-01-01T00:00:00Z' })),
    IMMUTABLE,
  ),
  'set a deletionTimestamp by replace': refused(
    NOT_WRITTEN,
    (scene) => scene.replace(VM, ({ metadata }) => (metadata.deletionTimestamp = '2026-01-01T00:00:00Z')),
    IMMUTABLE,
  ),
  'remove its finalizers': harmless(
    'finalizers only delay a deletion that was requested',
    patch(VM, { body: { metadata: { finalizers: null } } }),
  ),
  'remove its finalizers, then delete it': refused(BY_POLICY, (scene) =>
    scene.inOrder(
      () => scene.call('PATCH', VM, { body: { metadata: { finalizers: null } } }),
      () => scene.call('DELETE', VM),
    ),
  ),
  'replace it with another uid': refused(
    'a uid cannot change',
    (scene) => scene.replace(VM, ({ metadata }) => (metadata.uid = 'aaaaaaaa-b3ef-428c-8861-06e72d69f223')),
    /^409 .*UID/,
  ),
  'replace it with another name': refused(
    'a name cannot change',
    (scene) => scene.replace(VM, ({ metadata }) => (metadata.name = 'other')),
    /^4\d\d .*name/,
  ),
  'replace it with another namespace': refused(
    'a namespace cannot change',
    (scene) => scene.replace(VM, ({ metadata }) => (metadata.namespace = 'default')),
    /^4\d\d .*namespace/,
  ),
  'create it again': refused(
    'a create does not overwrite an object',
    async (scene) => {
      const { metadata, ...rest } = (await scene.call('GET', VM)).body;
      return await scene.call('POST', vms, { body: { ...rest, metadata: { name: metadata.name } } });
    },
    /^409 .*already exists/,
  ),
  'create a VM whose generated name begins with its name': harmless(
    'a generated name is unique',
    async (scene) => {
      const { spec, kind, apiVersion } = (await scene.call('GET', VM)).body;
      const { firmware: _, ...domain } = spec.template.spec.domain;
      const template = { spec: { ...spec.template.spec, domain, volumes: [] } };
      domain.devices = { ...domain.devices, disks: [] };
      const vmSpec = { runStrategy: 'Halted', template };
      return await scene.call('POST', vms, {
        body: { kind, apiVersion, metadata: { generateName: 'db' }, spec: vmSpec },
      });
    },
    (scene) => scene.call('DELETE', `${vms}?labelSelector=!${encodeURIComponent(LABEL)}`),
  ),
  'set a label whose key is that of the label and a space': refused(
    'keys cannot contain spaces',
    patch(VM, { body: { metadata: { labels: { [LABEL]: 'true', [`${LABEL} `]: 'false' } } } }),
    /^422 .*[Ii]nvalid/,
  ),
  'set the label to a value that ends with a space': refused(
    'values cannot contain spaces',
    patch(VM, { body: labelPatch('true ') }),
    /^422 .*[Ii]nvalid/,
  ),
  'set a label whose key has capital letters': refused(
    'domains cannot contain capital letters',
    patch(VM, { body: { metadata: { labels: { 'KubeVirt.io/vm-delete-protection': 'false' } } } }),
    /^422 .*Invalid value/,
  ),
  'set the label with the mistyped group of the design document': harmless(
    'another key is another label',
    patch(VM, { body: { metadata: { labels: { 'kubevirtio.io/vm-delete-protection': 'false' } } } }),
  ),
  'set an annotation with the key of the label': harmless(
    'annotations are not labels',
    patch(VM, { body: { metadata: { annotations: { [LABEL]: 'false' } } } }),
  ),
  'set the label on the template': harmless(
    'the template describes instances',
    patch(VM, { body: { spec: { template: { metadata: { labels: { [LABEL]: 'false' } } } } } }),
  ),
  'remove the label through the status': harmless(
    'a status write ignores the metadata',
    patch(`${VM}/status`, { body: { ...labelPatch(null), status: {} } }),
  ),
  'set the status to not protected': harmless(
    'the status only reports the label',
    patch(`${VM}/status`, { body: { status: { deleteProtected: false } } }),
  ),
  'remove the label as a dry run': harmless(
    'a dry run writes nothing',
    patch(`${VM}?dryRun=All`, { body: labelPatch(null) }),
  ),
  'delete it with a strategic merge patch': refused(
    'custom resources do not support such patches',
    patch(VM, { contentType: STRATEGIC, body: { $patch: 'delete' } }),
    /^415 /,
  ),
  'server-side apply without the label': harmless(
    'apply removes only labels that the field manager owns',
    patch(`${VM}?fieldManager=x&force=true`, {
      contentType: APPLY,
      body: 'apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: db}\n',
    }),
  ),
  'remove the whole object with a JSON patch': refused(
    'the result of a patch must be an object',
    patch(VM, jsonPatch({ op: 'remove', path: '' })),
    /^4\d\d /,
  ),
  'set a reason that is too long': refused(
    'the length of reasons is limited',
    patch(VM, { body: { metadata: { annotations: { 'selfsame.io/delete-protection-reason': 'x'.repeat(1025) } } } }),
    /^422 /,
  ),
};

export const clients: Record<string, Row> = {
  'delete as an administrator': refused(NO_EXCEPTIONS, del(VM, almighty('kubernetes-admin'))),
  'delete as the VM controller': refused(NO_EXCEPTIONS, del(VM, ours('vm-controller'))),
  'delete as the restore controller': refused(NO_EXCEPTIONS, del(VM, ours('restore-controller'))),
  'delete as the protection controller': refused(NO_EXCEPTIONS, del(VM, ours('protection-controller'))),
  'delete as the operator': refused(NO_EXCEPTIONS, del(VM, ours('selfsame-operator'))),
  'delete as the garbage collector': refused(NO_EXCEPTIONS, del(VM, engines('generic-garbage-collector'))),
  'delete as the namespace controller': refused(NO_EXCEPTIONS, del(vms, engines('namespace-controller'))),
  'delete as the API server': refused(NO_EXCEPTIONS, del(VM, almighty('system:apiserver'))),
  'delete as a user without rights': refused(
    'RBAC comes first',
    del(VM, { user: { name: 'eve', groups: [] } }),
    /^403 .*cannot delete/,
  ),
  'delete its namespace as the namespace controller': refused(BY_MARK, del(namespace, engines('namespace-controller'))),
  'delete its claim as the volume binder': refused(BY_MARK, del(claimOf, engines('persistent-volume-binder'))),
  'delete its claim as a restore controller of another namespace': refused(
    BY_MARK,
    del(claimOf, almighty('system:serviceaccount:shop:restore-controller')),
  ),
  'delete its claim as the restore controller': refused(
    'no restore has marked it as replaced',
    del(claimOf, ours('restore-controller')),
  ),
  'delete its claim as the migration controller': refused(
    'no migration has marked it as replaced',
    del(claimOf, ours('migration-controller')),
  ),
  'mark its claim as replaced, as the VM controller': refused(
    'only controllers that replace claims write the mark',
    patch(claimOf, {
      body: { metadata: { annotations: { 'selfsame.io/replaced-by': 'x' } } },
      ...ours('vm-controller'),
    }),
    /^403 .*selfsame\.io\/replaced-by is written by Selfsame only$/,
  ),
  'delete its volume as the restore controller': refused(
    'the restore controller may only replace claims',
    del(volumeOf, ours('restore-controller')),
  ),
};

const owner = (uid: string, more: Loose = {}) => [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid, ...more }];
/** Gives the object at the URL an owner, and deletes the owner with these options. */
const deleteOwner =
  (url: (scene: Scene) => string, options: CallOptions, more?: Loose) =>
  async (scene: Scene): Promise<TestResponse> => {
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'owner' } };
    const { metadata } = (await scene.call('POST', configMaps, { body: object })).body;
    await scene.plane.server.api.ok('PATCH', url(scene), {
      body: { metadata: { ownerReferences: owner(metadata.uid, more) } },
    });
    await scene.plane.settle();
    return await scene.call('DELETE', `${configMaps}/owner`, options);
  };
const removeOwner = (url: (scene: Scene) => string) => async (scene: Scene) => {
  await scene.plane.server.api.ok('PATCH', url(scene), { body: { metadata: { ownerReferences: null } } });
  await scene.plane.advance(A_WHILE_MS);
  assert.equal((await scene.call('GET', `${configMaps}/owner`)).status, 404, 'the owner is deleted then');
};
const GARBAGE = 'the garbage collector is refused like any other client';
const vmUrl = () => VM;

export const garbage: Record<string, Row> = {
  'delete its owner': harmless(GARBAGE, deleteOwner(vmUrl, {}), removeOwner(vmUrl)),
  'delete its owner in the foreground': harmless(
    GARBAGE,
    deleteOwner(vmUrl, { body: { propagationPolicy: 'Foreground' } }, { blockOwnerDeletion: true }),
    removeOwner(vmUrl),
  ),
  'give it an owner that does not exist': harmless(
    GARBAGE,
    patch(VM, { body: { metadata: { ownerReferences: owner('bbbbbbbb-b3ef-428c-8861-06e72d69f223') } } }),
    removeOwner(vmUrl),
  ),
  'delete an owner of its claim': harmless(GARBAGE, deleteOwner(claimOf, {}), removeOwner(claimOf)),
  'give its claim an owner that controls it': refused(
    'only our own accounts change the owner that controls a disk',
    patch(claimOf, {
      body: { metadata: { ownerReferences: owner('bbbbbbbb-b3ef-428c-8861-06e72d69f223', { controller: true }) } },
    }),
    /^403 .*its controlling owner is written by Selfsame only$/,
  ),
};

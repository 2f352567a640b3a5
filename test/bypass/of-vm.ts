/** Ways around delete protection that go for the VM itself. */
import assert from 'node:assert/strict';
import { body, int, text } from '#engine/protobuf/wire-writer.fixture.ts';
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
import { json, LABEL, labelled } from '#test/support/protection.ts';
import type { Answer, CallOptions, Loose } from '#test/support/test-api.ts';

const ALPHA = '/apis/kubevirt.io/v1alpha3/namespaces/shop/virtualmachines';
const APPLY = 'application/apply-patch+yaml';
const BY_POLICY = 'the policy looks at the stored object, whatever comes with the request';
const BY_NAME = 'the policy knows no exceptions, neither for groups nor for our own parts';
const NOT_SERVED = 'we serve one version; the policy names the other one, too, for clusters where it is served';
const NO_ROUTE = 'there is nothing of that name below a VM';

const IMMUTABLE = /^422 .*field is immutable$/;

export const verbs: Record<string, Row> = {
  'delete by name': refused(BY_POLICY, del(VM)),
  'delete as a dry run': refused('a dry run says what would happen', del(`${VM}?dryRun=All`)),
  'delete with no time to end': refused(BY_POLICY, del(VM, { body: { gracePeriodSeconds: 0 } })),
  'delete with no time to end, in the query': refused(BY_POLICY, del(`${VM}?gracePeriodSeconds=0`)),
  'delete that orphans': refused(BY_POLICY, del(VM, { body: { propagationPolicy: 'Orphan' } })),
  'delete that orphans, as of old': refused(BY_POLICY, del(VM, { body: { orphanDependents: true } })),
  'delete in the foreground': refused(BY_POLICY, del(`${VM}?propagationPolicy=Foreground`)),
  'delete in the background': refused(BY_POLICY, del(VM, { body: { propagationPolicy: 'Background' } })),
  'delete of exactly that uid and revision': refused(BY_POLICY, async (scene) => {
    const { uid, resourceVersion } = (await scene.call('GET', VM)).body.metadata;
    return await scene.call('DELETE', VM, { body: { preconditions: { uid, resourceVersion } } });
  }),
  'delete of what is read as unsafe': refused(
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
  'delete by another version of the kind': refused(NOT_SERVED, del(`${ALPHA}/db`), /^404 /),
  'delete of all VMs of the namespace': refused(BY_POLICY, del(vms)),
  'delete of all VMs by another version': refused(NOT_SERVED, del(ALPHA), /^404 /),
  'delete of all VMs that have the label': refused(BY_POLICY, del(`${vms}?labelSelector=${LABEL}%3Dtrue`)),
  'delete of all VMs of that name': refused(BY_POLICY, del(`${vms}?fieldSelector=metadata.name%3Ddb`)),
  'delete of all VMs, one page': refused(BY_POLICY, del(`${vms}?limit=1`)),
  'delete of all VMs with no time to end': refused(BY_POLICY, del(vms, { body: { gracePeriodSeconds: 0 } })),
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
  'a deletionTimestamp by merge patch': refused(
    NOT_WRITTEN,
    patch(VM, { body: { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } } }),
    IMMUTABLE,
  ),
  'a deletionTimestamp by JSON patch': refused(
    NOT_WRITTEN,
    patch(VM, json({ op: 'add', path: '/metadata/deletionTimestamp', value: '2026-01-01T00:00:00Z' })),
    IMMUTABLE,
  ),
  'a deletionTimestamp by replace': refused(
    NOT_WRITTEN,
    (scene) => scene.replace(VM, ({ metadata }) => (metadata.deletionTimestamp = '2026-01-01T00:00:00Z')),
    IMMUTABLE,
  ),
  'no finalizers': harmless(
    'a finalizer only delays a deletion that there is',
    patch(VM, { body: { metadata: { finalizers: null } } }),
  ),
  'no finalizers, then delete': refused(BY_POLICY, (scene) =>
    scene.inOrder(
      () => scene.call('PATCH', VM, { body: { metadata: { finalizers: null } } }),
      () => scene.call('DELETE', VM),
    ),
  ),
  'replace with another uid': refused(
    'it would be another VM',
    (scene) => scene.replace(VM, ({ metadata }) => (metadata.uid = 'aaaaaaaa-b3ef-428c-8861-06e72d69f223')),
    /^409 .*UID/,
  ),
  'replace by another name': refused(
    'names do not change',
    (scene) => scene.replace(VM, ({ metadata }) => (metadata.name = 'other')),
    /^4\d\d .*name/,
  ),
  'replace into another namespace': refused(
    'namespaces do not change',
    (scene) => scene.replace(VM, ({ metadata }) => (metadata.namespace = 'default')),
    /^4\d\d .*namespace/,
  ),
  'create it anew': refused(
    'what is there is not overwritten',
    async (scene) => {
      const { metadata, ...rest } = (await scene.call('GET', VM)).body;
      return await scene.call('POST', vms, { body: { ...rest, metadata: { name: metadata.name } } });
    },
    /^409 .*already exists/,
  ),
  'create one whose generated name begins with its name': harmless(
    'a generated name is never that of another',
    async (scene) => {
      const { spec, kind, apiVersion } = (await scene.call('GET', VM)).body;
      const { firmware: _, ...domain } = spec.template.spec.domain;
      const template = { spec: { ...spec.template.spec, domain, volumes: [] } };
      domain.devices = { ...domain.devices, disks: [] };
      const wish = { runStrategy: 'Halted', template };
      return await scene.call('POST', vms, {
        body: { kind, apiVersion, metadata: { generateName: 'db' }, spec: wish },
      });
    },
    (scene) => scene.call('DELETE', `${vms}?labelSelector=!${encodeURIComponent(LABEL)}`),
  ),
  'the label by another writing: a space behind the key': refused(
    'no key has spaces',
    patch(VM, { body: { metadata: { labels: { [LABEL]: 'true', [`${LABEL} `]: 'false' } } } }),
    /^422 .*[Ii]nvalid/,
  ),
  'the label with a space behind its value': refused(
    'no value has spaces',
    patch(VM, { body: labelled('true ') }),
    /^422 .*[Ii]nvalid/,
  ),
  'the label in capitals beside it': refused(
    'no domain has capitals',
    patch(VM, { body: { metadata: { labels: { 'KubeVirt.io/vm-delete-protection': 'false' } } } }),
    /^422 .*Invalid value/,
  ),
  'the label of a mistyped group, as in the words of the proposal': harmless(
    'another key is another label',
    patch(VM, { body: { metadata: { labels: { 'kubevirtio.io/vm-delete-protection': 'false' } } } }),
  ),
  'the label as an annotation': harmless(
    'annotations are no labels',
    patch(VM, { body: { metadata: { annotations: { [LABEL]: 'false' } } } }),
  ),
  'the label on the template': harmless(
    'the template is of instances',
    patch(VM, { body: { spec: { template: { metadata: { labels: { [LABEL]: 'false' } } } } } }),
  ),
  'no label, written through the status': harmless(
    'only the status is written there',
    patch(`${VM}/status`, { body: { ...labelled(null), status: {} } }),
  ),
  'a status that says it is not protected': harmless(
    'the status tells, the label decides',
    patch(`${VM}/status`, { body: { status: { deleteProtected: false } } }),
  ),
  'no label, as a dry run': harmless('a dry run writes nothing', patch(`${VM}?dryRun=All`, { body: labelled(null) })),
  'a strategic merge patch that deletes it': refused(
    'custom kinds know no such patch',
    patch(VM, { contentType: STRATEGIC, body: { $patch: 'delete' } }),
    /^415 /,
  ),
  'server-side apply without the label': harmless(
    'who does not own the label does not remove it',
    patch(`${VM}?fieldManager=x&force=true`, {
      contentType: APPLY,
      body: 'apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: db}\n',
    }),
  ),
  'a JSON patch that removes all of it': refused(
    'a patch leaves an object',
    patch(VM, json({ op: 'remove', path: '' })),
    /^4\d\d /,
  ),
  'a reason longer than anybody reads': refused(
    'reasons are bounded',
    patch(VM, { body: { metadata: { annotations: { 'selfsame.io/delete-protection-reason': 'x'.repeat(1025) } } } }),
    /^422 /,
  ),
};

export const people: Record<string, Row> = {
  'delete as an administrator': refused(BY_NAME, del(VM, almighty('kubernetes-admin'))),
  'delete as the VM controller': refused(BY_NAME, del(VM, ours('vm-controller'))),
  'delete as the restore controller': refused(BY_NAME, del(VM, ours('restore-controller'))),
  'delete as the protection controller': refused(BY_NAME, del(VM, ours('protection-controller'))),
  'delete as the operator': refused(BY_NAME, del(VM, ours('selfsame-operator'))),
  'delete as the garbage collector': refused(BY_NAME, del(VM, engines('generic-garbage-collector'))),
  'delete as the namespace controller': refused(BY_NAME, del(vms, engines('namespace-controller'))),
  'delete as the API server': refused(BY_NAME, del(VM, almighty('system:apiserver'))),
  'delete as nobody': refused(
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
  'delete its volume as the restore controller': refused(
    'it replaces claims, nothing else',
    del(volumeOf, ours('restore-controller')),
  ),
};

const owner = (uid: string, more: Loose = {}) => [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid, ...more }];
/** What is at the URL belongs to an owner, which goes that way. */
const dyingOwner =
  (url: (scene: Scene) => string, options: CallOptions, more?: Loose) =>
  async (scene: Scene): Promise<Answer> => {
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'owner' } };
    const { metadata } = (await scene.call('POST', configMaps, { body: object })).body;
    await scene.plane.server.api.ok('PATCH', url(scene), {
      body: { metadata: { ownerReferences: owner(metadata.uid, more) } },
    });
    await scene.plane.settle();
    return await scene.call('DELETE', `${configMaps}/owner`, options);
  };
const withoutOwner = (url: (scene: Scene) => string) => async (scene: Scene) => {
  await scene.plane.server.api.ok('PATCH', url(scene), { body: { metadata: { ownerReferences: null } } });
  await scene.plane.advance(A_WHILE_MS);
  assert.equal((await scene.call('GET', `${configMaps}/owner`)).status, 404, 'the owner goes then');
};
const GARBAGE = 'the garbage collector is refused as everybody is';
const vmUrl = () => VM;

export const garbage: Record<string, Row> = {
  'an owner that is gone': harmless(GARBAGE, dyingOwner(vmUrl, {}), withoutOwner(vmUrl)),
  'an owner that goes in the foreground': harmless(
    GARBAGE,
    dyingOwner(vmUrl, { body: { propagationPolicy: 'Foreground' } }, { blockOwnerDeletion: true }),
    withoutOwner(vmUrl),
  ),
  'an owner that never was': harmless(
    GARBAGE,
    patch(VM, { body: { metadata: { ownerReferences: owner('bbbbbbbb-b3ef-428c-8861-06e72d69f223') } } }),
    withoutOwner(vmUrl),
  ),
  'an owner that controls its claim and is gone': harmless(
    GARBAGE,
    dyingOwner(claimOf, {}, { controller: true }),
    withoutOwner(claimOf),
  ),
};

/** Ways to lose the identity record of a protected VM, and with it the addresses of all of its devices. */
import assert from 'node:assert/strict';
import {
  almighty,
  BY_MARK,
  del,
  engines,
  harmless,
  ours,
  patch,
  records,
  refused,
  type Row,
  type Scene,
  vmis,
} from '#test/bypass/scene.ts';
import { json, RECORD_CRD } from '#test/support/protection.ts';
import type { Loose } from '#test/support/test-api.ts';

const RECORD = `${records}/db`;
const WITH_VM = 'it goes with its VM only';
const WRITTEN_BY_US = 'only our controllers write it';
const KEPT =
  /^403 .*VirtualMachineIdentity "db" cannot be deleted: it holds the device addresses of VirtualMachine db;/;
const UNCHANGED = /^403 .*VirtualMachineIdentity "db" cannot be changed: .* are written by Selfsame only/;
const DEFINES =
  /^403 .*"virtualmachineidentities.identity.selfsame.io" cannot be deleted: it defines the identity record of the protected VirtualMachine shop\/db;/;
const APPLY = 'application/apply-patch+yaml';

const apply = (content: object, at = RECORD) =>
  patch(`${at}?fieldManager=mallory&force=true`, {
    body: {
      apiVersion: 'identity.selfsame.io/v1',
      kind: 'VirtualMachineIdentity',
      metadata: { name: 'db' },
      ...content,
    },
    contentType: APPLY,
  });

/** Deletes it as somebody whom the policies let through, and has the guest start anew. */
async function deleteAsCollector(scene: Scene) {
  const answer = await scene.call('DELETE', RECORD, engines('generic-garbage-collector'));
  await scene.plane.settle();
  const { metadata } = await scene.plane.server.api.ok('GET', RECORD);
  assert.ok(metadata.deletionTimestamp !== undefined, 'the delete was accepted');
  await scene.plane.server.api.ok('DELETE', `${vmis}/db`);
  return answer;
}

export const record: Record<string, Row> = {
  'delete its record': refused(WITH_VM, del(RECORD), KEPT),
  'delete its record with no time to end': refused(WITH_VM, del(RECORD, { body: { gracePeriodSeconds: 0 } }), KEPT),
  'delete its record in the foreground': refused(WITH_VM, del(`${RECORD}?propagationPolicy=Foreground`), KEPT),
  'delete its record, orphaning': refused(WITH_VM, del(`${RECORD}?propagationPolicy=Orphan`), KEPT),
  'delete all records': refused(WITH_VM, del(records), KEPT),
  'delete all records of that name': refused(WITH_VM, del(`${records}?fieldSelector=metadata.name%3Ddb`), KEPT),
  'delete its record as the VM controller': refused(WITH_VM, del(RECORD, ours('vm-controller')), KEPT),
  'delete its record as the restore controller': refused(WITH_VM, del(RECORD, ours('restore-controller')), KEPT),
  'delete its record as almost the garbage collector': refused(
    'names are compared as a whole',
    del(RECORD, almighty('system:serviceaccount:kube-system:generic-garbage-collector-2')),
    KEPT,
  ),
  'a record without finalizers': refused(
    WRITTEN_BY_US,
    patch(RECORD, { body: { metadata: { finalizers: null } } }),
    UNCHANGED,
  ),
  'a record without finalizers, then delete': refused(
    WITH_VM,
    (scene) =>
      scene.inOrder(
        () => scene.call('PATCH', RECORD, json({ op: 'remove', path: '/metadata/finalizers' })),
        () => scene.call('DELETE', RECORD),
      ),
    KEPT,
  ),
  'a record without owner': refused(
    WRITTEN_BY_US,
    patch(RECORD, { body: { metadata: { ownerReferences: null } } }),
    UNCHANGED,
  ),
  'a record whose owner does not control it': refused(
    WRITTEN_BY_US,
    patch(RECORD, json({ op: 'replace', path: '/metadata/ownerReferences/0/controller', value: false })),
    UNCHANGED,
  ),
  'a record of an owner that does not exist': refused(
    WRITTEN_BY_US,
    patch(RECORD, json({ op: 'replace', path: '/metadata/ownerReferences/0/uid', value: 'nobody' })),
    UNCHANGED,
  ),
  'a record without owner, through its status': harmless(
    'metadata of a status write is not taken',
    patch(`${RECORD}/status`, { body: { metadata: { ownerReferences: null, finalizers: null } } }),
  ),
  'a record without devices': refused(
    WRITTEN_BY_US,
    patch(`${RECORD}/status`, { body: { status: { devices: null } } }),
    UNCHANGED,
  ),
  'a record with an empty status, by replace': refused(
    WRITTEN_BY_US,
    (scene) => scene.replace(RECORD, (object) => delete object.status, {}, `${RECORD}/status`),
    UNCHANGED,
  ),
  'a record with other devices, by apply': refused(
    WRITTEN_BY_US,
    apply({ status: { devices: [{ id: 'disk-root', type: 'disk', device: 'disk' }] } }, `${RECORD}/status`),
    UNCHANGED,
  ),
  'a record of another machine, by apply': refused(
    WRITTEN_BY_US,
    apply({ spec: { firmware: { uuid: 'aaaaaaaa-b3ef-428c-8861-06e72d69f223' } } }),
    UNCHANGED,
  ),
  'a record without devices, as the snapshot controller': refused(
    WRITTEN_BY_US,
    patch(`${RECORD}/status`, { body: { status: null }, ...ours('snapshot-controller') }),
    UNCHANGED,
  ),
  'a deletionTimestamp on its record': refused(
    WITH_VM,
    patch(RECORD, { body: { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } } }),
    /^422 .*field is immutable$/,
  ),
  'a label and an annotation on its record': harmless(
    'they say nothing of the machine',
    patch(RECORD, { body: { metadata: { labels: { team: 'blue' }, annotations: { note: 'mine' } } } }),
  ),
  'delete the definition of records': refused(BY_MARK, del(RECORD_CRD), DEFINES),
  'delete all definitions of that name': refused(
    BY_MARK,
    del(
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldSelector=metadata.name%3Dvirtualmachineidentities.identity.selfsame.io',
    ),
    DEFINES,
  ),
  'a definition of records without finalizers, then delete': refused(
    BY_MARK,
    (scene) =>
      scene.inOrder(
        () => scene.call('PATCH', RECORD_CRD, { body: { metadata: { finalizers: null } } }),
        () => scene.call('DELETE', RECORD_CRD),
      ),
    DEFINES,
  ),
  'a definition of records that serves no version': harmless('the operator puts it back', async (scene) =>
    scene.replace(RECORD_CRD, ({ spec }) => spec.versions.forEach((version: Loose) => (version.served = false))),
  ),
  // The last one: a delete that was accepted cannot be taken back.
  'its record is deleted by who is allowed to act as the garbage collector': harmless(
    'the finalizer keeps it until the VM is gone',
    deleteAsCollector,
  ),
};

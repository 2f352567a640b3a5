/** Attempts to lose the identity record of a protected VM, which has the addresses of all its devices. */
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
import { jsonPatch, RECORD_CRD } from '#test/support/protection.ts';
import type { Loose } from '#test/support/test-api.ts';

const RECORD = `${records}/db`;
const WITH_VM = 'it is deleted only with its VM';
const WRITTEN_BY_US = 'only our controllers write it';
const DELETE_REFUSED =
  /^403 .*VirtualMachineIdentity "db" cannot be deleted: it holds the device addresses of VirtualMachine db;/;
const CHANGE_REFUSED = /^403 .*VirtualMachineIdentity "db" cannot be changed: .* are written by Selfsame only/;
const CRD_REFUSED =
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

/** Deletes the record as the garbage collector, which the policies allow, and restarts the guest. */
async function deleteAsCollector(scene: Scene) {
  const answer = await scene.call('DELETE', RECORD, engines('generic-garbage-collector'));
  await scene.plane.settle();
  const { metadata } = await scene.plane.server.api.ok('GET', RECORD);
  assert.ok(metadata.deletionTimestamp !== undefined, 'the delete was accepted');
  await scene.plane.server.api.ok('DELETE', `${vmis}/db`);
  return answer;
}

export const record: Record<string, Row> = {
  'delete its record': refused(WITH_VM, del(RECORD), DELETE_REFUSED),
  'delete its record with a grace period of 0': refused(
    WITH_VM,
    del(RECORD, { body: { gracePeriodSeconds: 0 } }),
    DELETE_REFUSED,
  ),
  'delete its record in the foreground': refused(
    WITH_VM,
    del(`${RECORD}?propagationPolicy=Foreground`),
    DELETE_REFUSED,
  ),
  'delete its record with propagation policy Orphan': refused(
    WITH_VM,
    del(`${RECORD}?propagationPolicy=Orphan`),
    DELETE_REFUSED,
  ),
  'delete all records': refused(WITH_VM, del(records), DELETE_REFUSED),
  'delete all records of that name': refused(
    WITH_VM,
    del(`${records}?fieldSelector=metadata.name%3Ddb`),
    DELETE_REFUSED,
  ),
  'delete its record as the VM controller': refused(WITH_VM, del(RECORD, ours('vm-controller')), DELETE_REFUSED),
  'delete its record as the restore controller': refused(
    WITH_VM,
    del(RECORD, ours('restore-controller')),
    DELETE_REFUSED,
  ),
  'delete its record as an account whose name begins like that of the garbage collector': refused(
    'names are compared as a whole',
    del(RECORD, almighty('system:serviceaccount:kube-system:generic-garbage-collector-2')),
    DELETE_REFUSED,
  ),
  'remove the finalizers of its record': refused(
    WRITTEN_BY_US,
    patch(RECORD, { body: { metadata: { finalizers: null } } }),
    CHANGE_REFUSED,
  ),
  'remove the finalizers of its record, then delete it': refused(
    WITH_VM,
    (scene) =>
      scene.inOrder(
        () => scene.call('PATCH', RECORD, jsonPatch({ op: 'remove', path: '/metadata/finalizers' })),
        () => scene.call('DELETE', RECORD),
      ),
    DELETE_REFUSED,
  ),
  'remove the owner of its record': refused(
    WRITTEN_BY_US,
    patch(RECORD, { body: { metadata: { ownerReferences: null } } }),
    CHANGE_REFUSED,
  ),
  'make the owner of its record not its controller': refused(
    WRITTEN_BY_US,
    patch(RECORD, jsonPatch({ op: 'replace', path: '/metadata/ownerReferences/0/controller', value: false })),
    CHANGE_REFUSED,
  ),
  'give its record an owner that does not exist': refused(
    WRITTEN_BY_US,
    patch(RECORD, jsonPatch({ op: 'replace', path: '/metadata/ownerReferences/0/uid', value: 'nobody' })),
    CHANGE_REFUSED,
  ),
  'remove the owner of its record through the status': harmless(
    'a status write ignores the metadata',
    patch(`${RECORD}/status`, { body: { metadata: { ownerReferences: null, finalizers: null } } }),
  ),
  'remove the devices of its record': refused(
    WRITTEN_BY_US,
    patch(`${RECORD}/status`, { body: { status: { devices: null } } }),
    CHANGE_REFUSED,
  ),
  'remove the status of its record, by replace': refused(
    WRITTEN_BY_US,
    (scene) => scene.replace(RECORD, (object) => delete object.status, {}, `${RECORD}/status`),
    CHANGE_REFUSED,
  ),
  'change the devices of its record, by apply': refused(
    WRITTEN_BY_US,
    apply({ status: { devices: [{ id: 'disk-root', type: 'disk', device: 'disk' }] } }, `${RECORD}/status`),
    CHANGE_REFUSED,
  ),
  'change the firmware UUID of its record, by apply': refused(
    WRITTEN_BY_US,
    apply({ spec: { firmware: { uuid: 'aaaaaaaa-b3ef-428c-8861-06e72d69f223' } } }),
    CHANGE_REFUSED,
  ),
  'remove the status of its record, as the snapshot controller': refused(
    WRITTEN_BY_US,
    patch(`${RECORD}/status`, { body: { status: null }, ...ours('snapshot-controller') }),
    CHANGE_REFUSED,
  ),
  'set a deletionTimestamp on its record': refused(
    WITH_VM,
    patch(RECORD, { body: { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } } }),
    /^422 .*field is immutable$/,
  ),
  'add a label and an annotation on its record': harmless(
    'they are not part of the identity',
    patch(RECORD, { body: { metadata: { labels: { team: 'blue' }, annotations: { note: 'mine' } } } }),
  ),
  'delete the CRD of identity records': refused(BY_MARK, del(RECORD_CRD), CRD_REFUSED),
  'delete all CRDs, selected by the name of that of records': refused(
    BY_MARK,
    del(
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldSelector=metadata.name%3Dvirtualmachineidentities.identity.selfsame.io',
    ),
    CRD_REFUSED,
  ),
  'remove the finalizers of the CRD of records, then delete it': refused(
    BY_MARK,
    (scene) =>
      scene.inOrder(
        () => scene.call('PATCH', RECORD_CRD, { body: { metadata: { finalizers: null } } }),
        () => scene.call('DELETE', RECORD_CRD),
      ),
    CRD_REFUSED,
  ),
  'make the CRD of records serve no version': harmless('the operator restores it', async (scene) =>
    scene.replace(RECORD_CRD, ({ spec }) => spec.versions.forEach((version: Loose) => (version.served = false))),
  ),
  // This row is last because an accepted delete cannot be undone.
  'delete its record as the garbage collector': harmless(
    'the finalizer keeps the record until the VM is deleted',
    deleteAsCollector,
  ),
};

/**
 * All objects that the operator maintains except the definitions of our kinds, in the order of creation: admission
 * first, so that no object of our kinds is ever stored without it.
 *
 *   accounts, policies, webhooks ──► definitions (definitions.ts) ──► objects of our kinds, classes and services
 */
import { type DesiredObject, desiredObject } from '#operator/desired.ts';
import { addressPolicies } from '#operator/objects/address-policy.ts';
import { apiServiceObjects } from '#operator/objects/api-services.ts';
import { deleteProtectionPolicies } from '#operator/objects/delete-protection.ts';
import { firmwarePolicy } from '#operator/objects/firmware-policy.ts';
import { nodePolicies } from '#operator/objects/node-policies.ts';
import { rbacObjects } from '#operator/objects/rbac.ts';
import { recordPolicies } from '#operator/objects/record-policy.ts';
import { settingsPolicy } from '#operator/objects/settings-policy.ts';
import {
  storageClassObjects,
  storageProfileObjects,
  volumeSnapshotClassObjects,
} from '#operator/objects/storage-classes.ts';
import { snapshotPolicies } from '#operator/objects/snapshot-policies.ts';
import { snapshotDataPolicies } from '#operator/objects/snapshot-data.ts';
import { webhookObjects } from '#operator/objects/webhooks.ts';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';

/** The KubeVirt object: created empty, and owned by the administrator afterwards. */
const settingsObject: DesiredObject = desiredObject(
  KUBEVIRTS,
  { namespace: SYSTEM_NAMESPACE, name: KUBEVIRT_NAME },
  { spec: { configuration: {} } },
  { once: true },
);

/** Objects that must exist before our kinds are served. The webhook gets its permissions before its first request. */
export const objectsBeforeKinds: readonly DesiredObject[] = [
  ...rbacObjects,
  ...nodePolicies,
  ...firmwarePolicy,
  ...recordPolicies,
  ...addressPolicies,
  ...deleteProtectionPolicies,
  ...snapshotPolicies,
  ...snapshotDataPolicies,
  ...settingsPolicy,
  ...webhookObjects,
];

export const objectsAfterKinds: readonly DesiredObject[] = [
  // Before the classes: a state claim in a class without a profile would get the wrong modes.
  ...storageProfileObjects,
  ...storageClassObjects,
  ...volumeSnapshotClassObjects,
  settingsObject,
  ...apiServiceObjects,
];

export const maintainedObjects: readonly DesiredObject[] = [...objectsBeforeKinds, ...objectsAfterKinds];

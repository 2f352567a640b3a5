/** All that the operator keeps in place, but for the definitions of our kinds, which come first. In the order in which it is made. */
import type { Desired } from '#operator/desired.ts';
import { apiServices } from '#operator/objects/api-services.ts';
import { deleteProtection } from '#operator/objects/delete-protection.ts';
import { firmwarePolicy } from '#operator/objects/firmware-policy.ts';
import { nodePolicies } from '#operator/objects/node-policies.ts';
import { rbacObjects } from '#operator/objects/rbac.ts';
import { recordPolicies } from '#operator/objects/record-policy.ts';
import { settings } from '#operator/objects/settings.ts';
import { storageClasses } from '#operator/objects/storage-classes.ts';
import { volumeSnapshotClasses } from '#operator/objects/volume-snapshot-classes.ts';
import { webhookObjects } from '#operator/objects/webhooks.ts';

export const installation: readonly Desired[] = [
  ...rbacObjects,
  ...storageClasses,
  ...volumeSnapshotClasses,
  ...nodePolicies,
  ...firmwarePolicy,
  ...recordPolicies,
  ...deleteProtection,
  // Before the webhooks, one of which would be asked about it.
  settings,
  ...webhookObjects,
  ...apiServices,
];

/**
 * Policies that protect the identity record of a VM: it is deleted only with the VM, and only our controllers write its
 * content, whatever permissions a user has. A record without a VM, as after `kubectl delete --cascade=orphan`, is not
 * protected.
 */
import { IDENTITY_GROUP } from '#api/names.ts';
import { RECORD_DELETERS, RECORD_WRITERS } from '#api/own-accounts.ts';
import type { DesiredObject } from '#operator/desired.ts';
import { buildPolicy, matchDeletes, matchUpdates } from '#operator/objects/policy.ts';

const RECORDS = 'virtualmachineidentities';
const user = 'request.userInfo.username';
const list = (values: readonly string[]) => `[${values.map((value) => `'${value}'`).join(', ')}]`;

const isOwnedByVm = {
  name: 'is-owned-by-a-vm',
  expression:
    "has(oldObject.metadata.ownerReferences) && oldObject.metadata.ownerReferences.exists(o, o.kind == 'VirtualMachine' && has(o.controller) && o.controller)",
};
const isNotBy = (users: readonly string[]) => ({
  name: 'is-not-exempt',
  expression: `!(${user} in ${list(users)})`,
});

/** CEL: the field at the path is unchanged, or absent before and after. */
function unchanged(path: string): string {
  const [is, was] = [`object.${path}`, `oldObject.${path}`];
  return `has(${is}) == has(${was}) && (!has(${is}) || ${is} == ${was})`;
}

/** CEL: the record has no devices yet, so that a backup can be restored. */
const WITHOUT_DEVICES = '!has(oldObject.status) || !has(oldObject.status.devices)';
const KEPT = ['spec', 'status', 'metadata.finalizers', 'metadata.ownerReferences'];
const named = `'VirtualMachineIdentity "' + oldObject.metadata.name + '" `;

export const recordPolicies: readonly DesiredObject[] = [
  ...buildPolicy('selfsame-identity-record-deletes', {
    resourceRules: [matchDeletes(IDENTITY_GROUP, RECORDS)],
    matchConditions: [isNotBy(RECORD_DELETERS), isOwnedByVm],
    validations: [
      {
        expression: 'false',
        messageExpression: `${named}cannot be deleted: it holds the device addresses of VirtualMachine ' + oldObject.metadata.name + '; delete the VirtualMachine, and its record is deleted with it'`,
        reason: 'Forbidden',
      },
    ],
  }),
  ...buildPolicy('selfsame-identity-record-writes', {
    resourceRules: [matchUpdates(IDENTITY_GROUP, RECORDS, `${RECORDS}/status`)],
    matchConditions: [isNotBy(RECORD_WRITERS), isOwnedByVm],
    validations: [
      {
        expression: KEPT.map((path) =>
          path === 'status' ? `(${WITHOUT_DEVICES} || ${unchanged(path)})` : `(${unchanged(path)})`,
        ).join(' && '),
        messageExpression: `${named}cannot be changed: its spec, status, finalizers and ownerReferences are written by Selfsame only; change VirtualMachine ' + oldObject.metadata.name + ' instead'`,
        reason: 'Forbidden',
      },
    ],
  }),
];

/**
 * Policies on snapshots of VMs. A restore writes the spec of the VM and its identity record from the content of a
 * snapshot, so only the controller that has read them from the VM writes the spec of a content. Patches of a restore
 * change the VM as the user wants, so they require the right to update it.
 */
import { KUBEVIRT_GROUP, SNAPSHOT_GROUP } from '#api/names.ts';
import { accountOf } from '#api/own-accounts.ts';
import type { DesiredObject } from '#operator/desired.ts';
import { celText, user } from '#operator/objects/cel.ts';
import { buildPolicy, matchWrites } from '#operator/objects/policy.ts';

const writesOf = (resource: string) => ({ ...matchWrites(SNAPSHOT_GROUP, resource), apiVersions: ['*'] });
const writesSpec = {
  name: 'writes-the-spec',
  expression: "request.operation == 'CREATE' || object.spec != oldObject.spec",
};

export const snapshotPolicies: readonly DesiredObject[] = [
  ...buildPolicy('selfsame-snapshot-contents', {
    resourceRules: [writesOf('virtualmachinesnapshotcontents')],
    matchConditions: [writesSpec],
    validations: [
      {
        expression: `${user} == ${celText(accountOf('snapshot-controller'))}`,
        message:
          'the spec of a VirtualMachineSnapshotContent is written by Selfsame only; take a VirtualMachineSnapshot',
        reason: 'Forbidden',
      },
    ],
  }),
  ...buildPolicy('selfsame-restore-patches', {
    resourceRules: [writesOf('virtualmachinerestores')],
    matchConditions: [
      writesSpec,
      { name: 'has-patches', expression: 'has(object.spec.patches) && size(object.spec.patches) > 0' },
    ],
    validations: [
      {
        expression: `authorizer.group('${KUBEVIRT_GROUP}').resource('virtualmachines').namespace(request.namespace).name(object.spec.target.name).check('update').allowed()`,
        messageExpression:
          "'patches require the right to update VirtualMachine \"' + object.spec.target.name + '\": ask for it, or restore without patches'",
        reason: 'Forbidden',
      },
    ],
  }),
];

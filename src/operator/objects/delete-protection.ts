/**
 * Policies by which the API server refuses to delete protected VMs, and objects that they depend on, even if none of
 * our processes runs. controllers/protection marks these objects with an annotation, which no other user may write.
 */
import {
  MAX_REASON_LENGTH,
  PROTECTED_VMS_ANNOTATION,
  PROTECTION_LABEL,
  PROTECTION_POLICY,
  PROTECTION_REASON_ANNOTATION,
} from '#api/protection/delete-protection.ts';
import { KUBEVIRT_GROUP } from '#api/names.ts';
import { CLAIM_REPLACERS, PROTECTION_ACCOUNT } from '#api/own-accounts.ts';
import { RELATIONS, DEFINITION_RELATIONS, describeDeleteRefusal } from '#api/protection/protected-deletes.ts';
import { REPLACED_BY_ANNOTATION } from '#api/storage/persistent-state.ts';
import type { DesiredObject } from '#operator/desired.ts';
import { annotationOf, celList, celMap, celText, markOf, user } from '#operator/objects/cel.ts';
import { buildPolicy, matchDeletes, matchUpdates } from '#operator/objects/policy.ts';
import { protectedClaimPolicies } from '#operator/objects/protected-claims.ts';
import { protectedVolumePolicies } from '#operator/objects/protected-volumes.ts';

const APIEXTENSIONS = 'apiextensions.k8s.io';

/** CEL: the reason of the protection. A message that is too long or has line breaks would be replaced by a general one. */
const reason = `${annotationOf('oldObject', PROTECTION_REASON_ANNOTATION)}.replace('\\n', ' ').replace('\\r', ' ')`;
const shortReason = `(size(${reason}) > ${MAX_REASON_LENGTH} ? ${reason}.substring(0, ${MAX_REASON_LENGTH}) : ${reason})`;
/** CEL: the end of the message that refuses to delete a VM: why it is protected, and how the protection ends. */
const wayOut = `(${reason} == '' ? '' : ' (reason: ' + ${shortReason} + ')') + '; to end the protection: virtctl unprotect ' + string(oldObject.metadata.name) + ' -n ' + string(oldObject.metadata.namespace)`;

/** CEL: an expression within a string literal. */
const interpolate = (expression: string) => `' + ${expression} + '`;
/** CEL: the relation of the object to the VMs. Names of definitions contain dots, names of kinds do not. */
const relation = `(oldObject.metadata.name in ${celMap(DEFINITION_RELATIONS)} && request.kind.kind == 'CustomResourceDefinition' ? ${celMap(DEFINITION_RELATIONS)}[oldObject.metadata.name] : ${celMap(RELATIONS)}[request.kind.kind])`;

/**
 * Name, rule and message are KubeVirt's, because its users and tools know them. The message continues with the reason of
 * the user who protected the VM.
 */
const vms = buildPolicy(PROTECTION_POLICY, {
  labels: {
    'app.kubernetes.io/name': 'vm-delete-protection',
    'app.kubernetes.io/component': 'vmDeleteProtection',
  },
  resourceRules: [{ ...matchDeletes(KUBEVIRT_GROUP, 'virtualmachines'), apiVersions: ['v1', 'v1alpha3'] }],
  variables: [{ name: 'label', expression: `string('${PROTECTION_LABEL}')` }],
  validations: [
    {
      expression:
        "(!has(oldObject.metadata.labels) || !(variables.label in oldObject.metadata.labels) || !oldObject.metadata.labels[variables.label].matches('^(true|True)$'))",
      messageExpression:
        "'VirtualMachine ' + string(oldObject.metadata.name) + ' cannot be deleted, disable/remove label \\'' + variables.label + '\\' from VirtualMachine before deleting it' + " +
        wayOut,
    },
  ],
});

const dependencies = buildPolicy('selfsame-protected-vms', {
  resourceRules: [
    matchDeletes('', 'namespaces', 'persistentvolumeclaims', 'persistentvolumes'),
    matchDeletes(APIEXTENSIONS, 'customresourcedefinitions'),
  ],
  matchConditions: [
    { name: 'is-marked', expression: `${markOf('oldObject')} != ''` },
    {
      name: 'is-not-replaced',
      expression: `!(request.kind.kind == 'PersistentVolumeClaim' && ${user} in ${celList(CLAIM_REPLACERS)} && ${annotationOf('oldObject', REPLACED_BY_ANNOTATION)} != '')`,
    },
  ],
  variables: [{ name: 'vms', expression: markOf('oldObject') }],
  validations: [
    {
      expression: "variables.vms == ''",
      messageExpression: celText(
        describeDeleteRefusal({
          kind: interpolate('request.kind.kind'),
          name: interpolate('oldObject.metadata.name'),
          relation: interpolate(relation),
          vms: interpolate('variables.vms'),
        }),
      ),
      reason: 'Forbidden',
    },
  ],
});

const marks = buildPolicy('selfsame-protected-marks', {
  resourceRules: [
    // Includes status subresources: their writes can change annotations.
    matchUpdates(
      '',
      ...['namespaces', 'namespaces/status', 'namespaces/finalize'],
      ...['persistentvolumeclaims', 'persistentvolumeclaims/status'],
      ...['persistentvolumes', 'persistentvolumes/status'],
    ),
    matchUpdates(APIEXTENSIONS, 'customresourcedefinitions', 'customresourcedefinitions/status'),
  ],
  matchConditions: [{ name: 'changes-a-mark', expression: `${markOf('object')} != ${markOf('oldObject')}` }],
  validations: [
    {
      expression: `${user} == '${PROTECTION_ACCOUNT}'`,
      message: `${PROTECTED_VMS_ANNOTATION} is written by Selfsame only`,
      reason: 'Forbidden',
    },
  ],
});

export const deleteProtectionPolicies: readonly DesiredObject[] = [
  ...vms,
  ...dependencies,
  ...marks,
  ...protectedVolumePolicies,
  ...protectedClaimPolicies,
];

/**
 * Protected VMs stay, whichever of our processes are alive: the API server itself refuses to delete them, and whatever
 * they would be lost with. What that is, is told by the marks of controllers/protection; nobody else may write them.
 */
import { PROTECTED_VMS_ANNOTATION, PROTECTION_LABEL, PROTECTION_POLICY } from '#api/delete-protection.ts';
import { KUBEVIRT_GROUP } from '#api/names.ts';
import { CLAIM_REPLACERS, PROTECTION_ACCOUNT } from '#api/own-accounts.ts';
import { BONDS, DEFINITION_BONDS, deleteRefusal } from '#api/protected-deletes.ts';
import type { Desired } from '#operator/desired.ts';
import { policy, whenDeleted, whenUpdated } from '#operator/objects/policy.ts';

const APIEXTENSIONS = 'apiextensions.k8s.io';
const user = 'request.userInfo.username';

/** A text of CEL; what is in it has no quotes of that kind. */
const text = (value: string) => `'${value}'`;
const list = (values: readonly string[]) => `[${values.map(text).join(', ')}]`;

/** '' where there is none. */
const markOf = (object: string) =>
  `(has(${object}.metadata.annotations) && '${PROTECTED_VMS_ANNOTATION}' in ${object}.metadata.annotations ? ${object}.metadata.annotations['${PROTECTED_VMS_ANNOTATION}'] : '')`;

/** A value between two pieces of a text. */
const inserted = (expression: string) => `' + ${expression} + '`;
const mapOf = (values: Readonly<Record<string, string>>) =>
  `{${Object.entries(values)
    .map(([key, value]) => `${text(key)}: ${text(value)}`)
    .join(', ')}}`;
/** CEL: what the object is to the VMs. Names of definitions have dots, which no kind has. */
const bond = `(oldObject.metadata.name in ${mapOf(DEFINITION_BONDS)} && request.kind.kind == 'CustomResourceDefinition' ? ${mapOf(DEFINITION_BONDS)}[oldObject.metadata.name] : ${mapOf(BONDS)}[request.kind.kind])`;

/** Name, rule and words are those of upstream's operator: its users and tools know them. */
const vms = policy(PROTECTION_POLICY, {
  labels: {
    'app.kubernetes.io/name': 'vm-delete-protection',
    'app.kubernetes.io/component': 'vmDeleteProtection',
  },
  resourceRules: [{ ...whenDeleted(KUBEVIRT_GROUP, 'virtualmachines'), apiVersions: ['v1', 'v1alpha3'] }],
  variables: [{ name: 'label', expression: `string('${PROTECTION_LABEL}')` }],
  validations: [
    {
      expression:
        "(!has(oldObject.metadata.labels) || !(variables.label in oldObject.metadata.labels) || !oldObject.metadata.labels[variables.label].matches('^(true|True)$'))",
      messageExpression:
        "'VirtualMachine ' + string(oldObject.metadata.name) + ' cannot be deleted, disable/remove label \\'' + variables.label + '\\' from VirtualMachine before deleting it'",
    },
  ],
});

const whatTheyNeed = policy('selfsame-protected-vms', {
  resourceRules: [
    whenDeleted('', 'namespaces', 'persistentvolumeclaims', 'persistentvolumes'),
    whenDeleted(APIEXTENSIONS, 'customresourcedefinitions'),
  ],
  matchConditions: [
    { name: 'is-marked', expression: `${markOf('oldObject')} != ''` },
    {
      name: 'is-not-replaced',
      expression: `!(request.kind.kind == 'PersistentVolumeClaim' && ${user} in ${list(CLAIM_REPLACERS)})`,
    },
  ],
  variables: [{ name: 'vms', expression: markOf('oldObject') }],
  validations: [
    {
      expression: "variables.vms == ''",
      messageExpression: text(
        deleteRefusal({
          kind: inserted('request.kind.kind'),
          name: inserted('oldObject.metadata.name'),
          bond: inserted(bond),
          vms: inserted('variables.vms'),
        }),
      ),
      reason: 'Forbidden',
    },
  ],
});

const marks = policy('selfsame-protected-marks', {
  resourceRules: [
    // Also where only the status is written: annotations go with it.
    whenUpdated(
      '',
      ...['namespaces', 'namespaces/status', 'namespaces/finalize'],
      ...['persistentvolumeclaims', 'persistentvolumeclaims/status'],
      ...['persistentvolumes', 'persistentvolumes/status'],
    ),
    whenUpdated(APIEXTENSIONS, 'customresourcedefinitions', 'customresourcedefinitions/status'),
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

const phaseOf = (object: string) =>
  `(has(${object}.status) && has(${object}.status.phase) ? ${object}.status.phase : '')`;

/** Why something must not be done with a volume that has a mark. */
const volumeRefusal = (what: string) =>
  [
    `'PersistentVolume "' + oldObject.metadata.name + '" cannot be ${what}: ${BONDS.PersistentVolume} the protected VirtualMachine '`,
    markOf('oldObject'),
    `'; remove the label ${PROTECTION_LABEL} from them first'`,
  ].join(' + ');

/**
 * A volume that is given away takes the data with it; whoever holds the mark has it until then. One that says that it is
 * released does so, too: provisioners believe it, and delete the data before they try to delete the volume. Where its
 * claim is gone indeed, the mark goes first and the binder tries again.
 */
const volumes = policy('selfsame-protected-volumes', {
  resourceRules: [whenUpdated('', 'persistentvolumes', 'persistentvolumes/status')],
  matchConditions: [{ name: 'is-marked', expression: `${markOf('oldObject')} != ''` }],
  validations: [
    {
      expression:
        '!has(oldObject.spec.claimRef) || (has(object.spec.claimRef) && object.spec.claimRef == oldObject.spec.claimRef)',
      messageExpression: volumeRefusal('given to another claim'),
      reason: 'Forbidden',
    },
    {
      expression: `${phaseOf('oldObject')} != 'Bound' || ${phaseOf('object')} == 'Bound'`,
      messageExpression: volumeRefusal('released'),
      reason: 'Forbidden',
    },
  ],
});

export const deleteProtection: readonly Desired[] = [...vms, ...whatTheyNeed, ...marks, ...volumes];

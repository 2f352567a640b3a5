/**
 * Policies on the metadata of claims by which our controllers decide what belongs to a VM. Users may write labels,
 * annotations and owners of claims; on a claim that a protected VM needs, those that could make one of our controllers
 * release or delete it are written by our own accounts only.
 */
import { KUBEVIRT_GROUP, RESTORED_BY_ANNOTATION } from '#api/names.ts';
import { accountOf, CLAIM_KEEPERS, CLAIM_REPLACERS, STATUS_CLAIM_WRITERS } from '#api/own-accounts.ts';
import { REPLACED_BY_ANNOTATION, STATE_MARK_PREFIX, SUPERSEDES_ANNOTATION } from '#api/storage/persistent-state.ts';
import type { DesiredObject } from '#operator/desired.ts';
import {
  annotationOf,
  celList,
  celText,
  keepsKeys,
  markOf,
  oldAnnotationOf,
  sameStatus,
  user,
} from '#operator/objects/cel.ts';
import { buildPolicy, matchUpdates, matchWrites } from '#operator/objects/policy.ts';

const CLAIMS = ['persistentvolumeclaims', 'persistentvolumeclaims/status'] as const;

/** CEL: the references to controllers in the object. */
const controllersOf = (object: string) =>
  `(has(${object}.metadata.ownerReferences) ? ${object}.metadata.ownerReferences.filter(o, has(o.controller) && o.controller) : [])`;

/** CEL: the key `k` makes a claim the state of a VM. */
const isStateMark = `k.startsWith(${celText(STATE_MARK_PREFIX)}) || k == ${celText(SUPERSEDES_ANNOTATION)}`;

const named = `'PersistentVolumeClaim "' + oldObject.metadata.name + '" cannot be changed: it is a disk of the protected VirtualMachine ' + ${markOf('oldObject')} + '; its`;

const guarded = buildPolicy('selfsame-protected-claims', {
  resourceRules: [matchUpdates('', ...CLAIMS)],
  matchConditions: [
    { name: 'is-marked', expression: `${markOf('oldObject')} != ''` },
    { name: 'is-not-exempt', expression: `!(${user} in ${celList(CLAIM_KEEPERS)})` },
  ],
  validations: [
    {
      expression: `${controllersOf('object')} == ${controllersOf('oldObject')}`,
      messageExpression: `${named} controlling owner is written by Selfsame only'`,
      reason: 'Forbidden',
    },
    {
      expression: `${keepsKeys('labels', isStateMark)} && ${keepsKeys('annotations', isStateMark)}`,
      messageExpression: `${named} labels and annotations ${STATE_MARK_PREFIX}* and ${SUPERSEDES_ANNOTATION} are written by Selfsame only'`,
      reason: 'Forbidden',
    },
  ],
});

/** Returns a policy that lets only these users write the annotation, on any claim. */
function guardAnnotation(name: string, annotation: string, writers: readonly string[]): DesiredObject[] {
  return buildPolicy(name, {
    resourceRules: [matchWrites('', ...CLAIMS)],
    matchConditions: [
      {
        name: 'changes-the-annotation',
        expression: `${annotationOf('object', annotation)} != ${oldAnnotationOf(annotation)}`,
      },
    ],
    validations: [
      {
        expression: `${user} in ${celList(writers)}`,
        message: `${annotation} is written by Selfsame only`,
        reason: 'Forbidden',
      },
    ],
  });
}

/** The claims that the status of a VM names are protected, so no other user may write them. */
const statusClaims = buildPolicy('selfsame-status-claims', {
  resourceRules: [{ ...matchUpdates(KUBEVIRT_GROUP, 'virtualmachines/status'), apiVersions: ['*'] }],
  matchConditions: [{ name: 'is-not-exempt', expression: `!(${user} in ${celList(STATUS_CLAIM_WRITERS)})` }],
  validations: [
    {
      expression: `${sameStatus('stateClaim')} && ${sameStatus('protectedClaims')}`,
      message: 'status.stateClaim and status.protectedClaims of a VirtualMachine are written by Selfsame only',
      reason: 'Forbidden',
    },
  ],
});

export const protectedClaimPolicies: readonly DesiredObject[] = [
  ...guarded,
  ...statusClaims,
  ...guardAnnotation('selfsame-replaced-claims', REPLACED_BY_ANNOTATION, CLAIM_REPLACERS),
  ...guardAnnotation('selfsame-restored-claims', RESTORED_BY_ANNOTATION, [accountOf('restore-controller')]),
];

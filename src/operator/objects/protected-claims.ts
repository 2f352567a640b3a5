/**
 * Policies on the metadata of claims by which our controllers decide what belongs to a VM. Users may write labels,
 * annotations and owners of claims; on a claim that a protected VM needs, those that could make one of our controllers
 * release or delete it are written by our own accounts only.
 */
import { CLAIM_KEEPERS, CLAIM_REPLACERS } from '#api/own-accounts.ts';
import { REPLACED_BY_ANNOTATION, STATE_MARK_PREFIX, SUPERSEDES_ANNOTATION } from '#api/storage/persistent-state.ts';
import type { DesiredObject } from '#operator/desired.ts';
import { annotationOf, celList, celText, markOf, user } from '#operator/objects/cel.ts';
import { buildPolicy, matchUpdates, matchWrites } from '#operator/objects/policy.ts';

const CLAIMS = ['persistentvolumeclaims', 'persistentvolumeclaims/status'] as const;

/** CEL: the references to controllers in the object. */
const controllersOf = (object: string) =>
  `(has(${object}.metadata.ownerReferences) ? ${object}.metadata.ownerReferences.filter(o, has(o.controller) && o.controller) : [])`;

/** CEL: the map of the object, or an empty one. */
const mapOf = (object: string, field: 'labels' | 'annotations') =>
  `(has(${object}.metadata.${field}) ? ${object}.metadata.${field} : {})`;

/** CEL: the second map has all guarded keys of the first one, with the same values. */
const keeps = (from: string, to: string) =>
  `${from}.all(k, !(k.startsWith(${celText(STATE_MARK_PREFIX)}) || k == ${celText(SUPERSEDES_ANNOTATION)}) || (k in ${to} && ${to}[k] == ${from}[k]))`;

const unchangedMarks = (field: 'labels' | 'annotations') => {
  const [is, was] = [mapOf('object', field), mapOf('oldObject', field)];
  return `${keeps(is, was)} && ${keeps(was, is)}`;
};

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
      expression: `${unchangedMarks('labels')} && ${unchangedMarks('annotations')}`,
      messageExpression: `${named} labels and annotations ${STATE_MARK_PREFIX}* and ${SUPERSEDES_ANNOTATION} are written by Selfsame only'`,
      reason: 'Forbidden',
    },
  ],
});

const replacements = buildPolicy('selfsame-replaced-claims', {
  resourceRules: [matchWrites('', ...CLAIMS)],
  matchConditions: [
    {
      name: 'changes-the-replacement',
      expression: `${annotationOf('object', REPLACED_BY_ANNOTATION)} != (request.operation == 'CREATE' ? '' : ${annotationOf('oldObject', REPLACED_BY_ANNOTATION)})`,
    },
  ],
  validations: [
    {
      expression: `${user} in ${celList(CLAIM_REPLACERS)}`,
      message: `${REPLACED_BY_ANNOTATION} is written by Selfsame only`,
      reason: 'Forbidden',
    },
  ],
});

export const protectedClaimPolicies: readonly DesiredObject[] = [...guarded, ...replacements];

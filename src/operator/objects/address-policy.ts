/**
 * The policies that let only our controllers write NetworkAddresses and the addresses of pods, whatever permissions a user
 * has. An address that somebody else writes would be given to two guests, or taken from one that uses it.
 */
import { NETWORK_GROUP, POD_ADDRESSES_ANNOTATION, REQUESTED_ADDRESSES_ANNOTATION } from '#api/names.ts';
import { ADDRESS_WRITERS, POD_ADDRESS_WRITERS } from '#api/own-accounts.ts';
import type { DesiredObject } from '#operator/desired.ts';
import { annotationOf, celList, oldAnnotationOf, user } from '#operator/objects/cel.ts';
import { buildPolicy, matchDeletes, matchWrites } from '#operator/objects/policy.ts';

const ADDRESSES = 'networkaddresses';

const isNotOneOf = (users: readonly string[]) => [
  { name: 'is-not-exempt', expression: `!(${user} in ${celList(users)})` },
];

const addressPolicy: readonly DesiredObject[] = buildPolicy('selfsame-network-addresses', {
  resourceRules: [matchWrites(NETWORK_GROUP, ADDRESSES), matchDeletes(NETWORK_GROUP, ADDRESSES)],
  matchConditions: isNotOneOf(ADDRESS_WRITERS),
  validations: [
    {
      expression: 'false',
      messageExpression: `'NetworkAddress "' + request.name + '" is written by Selfsame only; to change the address of a VirtualMachine, set its annotation ${REQUESTED_ADDRESSES_ANNOTATION} and restart it; to release the address, delete the VirtualMachine'`,
      reason: 'Forbidden',
    },
  ],
});

/** The node agent gives a guest the addresses of its pod. Everybody who may write pods could take those of other guests. */
const podAddressPolicy: readonly DesiredObject[] = buildPolicy('selfsame-pod-addresses', {
  resourceRules: [matchWrites('', 'pods')],
  matchConditions: isNotOneOf(POD_ADDRESS_WRITERS),
  validations: [
    {
      expression: `${annotationOf('object', POD_ADDRESSES_ANNOTATION)} == ${oldAnnotationOf(POD_ADDRESSES_ANNOTATION)}`,
      message: `the annotation ${POD_ADDRESSES_ANNOTATION} of a pod is written by Selfsame only; to choose the address of a VirtualMachine, set its annotation ${REQUESTED_ADDRESSES_ANNOTATION} and restart it`,
      reason: 'Forbidden',
    },
  ],
});

export const addressPolicies: readonly DesiredObject[] = [...addressPolicy, ...podAddressPolicy];

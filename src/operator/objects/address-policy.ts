/**
 * The policy that lets only our controller write NetworkAddresses, whatever permissions a user has. An address that
 * somebody else writes would be given to two guests, or taken from one that uses it.
 */
import { NETWORK_GROUP, REQUESTED_ADDRESSES_ANNOTATION } from '#api/names.ts';
import { ADDRESS_WRITERS } from '#api/own-accounts.ts';
import type { DesiredObject } from '#operator/desired.ts';
import { buildPolicy, matchDeletes, matchWrites } from '#operator/objects/policy.ts';

const ADDRESSES = 'networkaddresses';
const writers = ADDRESS_WRITERS.map((user) => `'${user}'`).join(', ');

export const addressPolicy: readonly DesiredObject[] = buildPolicy('selfsame-network-addresses', {
  resourceRules: [matchWrites(NETWORK_GROUP, ADDRESSES), matchDeletes(NETWORK_GROUP, ADDRESSES)],
  matchConditions: [{ name: 'is-not-exempt', expression: `!(request.userInfo.username in [${writers}])` }],
  validations: [
    {
      expression: 'false',
      messageExpression: `'NetworkAddress "' + request.name + '" is written by Selfsame only; to change the address of a VirtualMachine, set its annotation ${REQUESTED_ADDRESSES_ANNOTATION} and restart it; to release the address, delete the VirtualMachine'`,
      reason: 'Forbidden',
    },
  ],
});

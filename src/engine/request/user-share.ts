/** The share of a user in the server's time (lib/fair-turns.ts). */
import type { UserInfo } from '#engine/request/request.ts';

const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):/;

/**
 * Returns the name under which the requests of a user are counted. All service accounts of a namespace share one: a user
 * who may write there can create any number of them.
 */
export function shareOf({ name }: UserInfo): string {
  const namespace = SERVICE_ACCOUNT.exec(name)?.[1];
  return namespace === undefined ? name : `system:serviceaccounts:${namespace}`;
}

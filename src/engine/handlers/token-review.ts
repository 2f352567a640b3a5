/** TokenReview: authenticates a token for given audiences. */
import { API_AUDIENCES } from '#engine/auth/service-accounts/claims.ts';
import { reviewWith } from '#engine/auth/tokens.ts';
import type { Call } from '#engine/handlers/call.ts';
import type { UserInfo } from '#engine/request/request.ts';
import { badRequest } from '#kube/api-error.ts';
import type { KubeObject } from '#kube/meta.ts';

/** Returns the status of a TokenReview. An invalid token is a result, not an error. */
export function reviewToken({ tokens }: Pick<Call, 'tokens'>, object: KubeObject): object {
  const { token, audiences = [] } = (object['spec'] ?? {}) as { token?: string; audiences?: string[] };
  if (!token) throw badRequest('token is required for TokenReview in authentication');
  const verdict = reviewWith(tokens, token, audiences.length === 0 ? API_AUDIENCES : audiences);
  if (verdict === undefined) return { user: {}, error: 'invalid bearer token' };
  if ('refused' in verdict) return { user: {}, error: verdict.refused };
  return { authenticated: true, user: formatUser(verdict.user), audiences: [...verdict.audiences] };
}

/** Formats a user for reviews. */
export function formatUser({ name, uid, groups, extra }: UserInfo): object {
  return { username: name, ...(uid ? { uid } : {}), groups, ...(extra ? { extra } : {}) };
}

/**
 * Authenticates service account tokens. The signature is verified once and cached; everything that can change (time,
 * account, bound objects) is checked for each request: tokens of a deleted account are invalid at once.
 */
import {
  readSecretToken,
  hasLifetimeEnded,
  lifetimeOf,
  tokenDigest,
} from '#engine/auth/service-accounts/bound-objects.ts';
import {
  API_AUDIENCES,
  type Claims,
  type IssuedClaims,
  type SecretClaims,
} from '#engine/auth/service-accounts/claims.ts';
import { readToken, type RefusedToken } from '#engine/auth/service-accounts/read-token.ts';
import type { SigningKey } from '#engine/auth/service-accounts/signing-key.ts';
import { serviceAccountUser, type Reference } from '#engine/auth/service-accounts/user.ts';
import { sharedAudiences, type TokenLookup, type TokenVerdict } from '#engine/auth/tokens.ts';
import type { UserInfo } from '#engine/request/request.ts';
import type { Store } from '#engine/store/store.ts';
import { goQuotedList } from '#kube/go/go-text.ts';
import { BoundedCache } from '#lib/bounded-cache.ts';
import type { Clock } from '#lib/clock.ts';

interface ServiceAccountTokenParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly key: SigningKey;
}

/** A token that we signed; it may be invalid by now. */
interface VerifiedToken {
  readonly claims: Claims;
  readonly user: UserInfo;
  readonly digest: string;
}

const MAX_REMEMBERED = 4096;
const MAX_REMEMBERED_LENGTH = 8 * 1024 * 1024;
/** Tolerates a clock that was set back slightly after a token was issued. */
const CLOCK_SKEW_SECONDS = 60;

const INVALIDATED = 'service account token has been invalidated';

export function serviceAccountTokens({ store, clock, key }: ServiceAccountTokenParts): TokenLookup {
  const remembered = new BoundedCache<string, VerifiedToken>({
    maxEntries: MAX_REMEMBERED,
    maxWeight: MAX_REMEMBERED_LENGTH,
  });

  function verifyToken(token: string): VerifiedToken | RefusedToken | undefined {
    const digest = tokenDigest(token);
    const known = remembered.get(digest);
    if (known !== undefined) return known;
    const claims = readToken(token, key);
    if (claims === undefined || 'refused' in claims) return claims;
    const fresh = { claims, user: userOf(claims), digest };
    // The claims take about as much memory as their text.
    remembered.set(digest, fresh, token.length);
    return fresh;
  }

  function review(token: string, audiences: readonly string[]): TokenVerdict | undefined {
    const found = verifyToken(token);
    if (found === undefined || 'refused' in found) return found;
    const { claims, user, digest } = found;
    const tokenAudiences = claims.type === 'issued' ? claims.audiences : API_AUDIENCES;
    const shared = sharedAudiences(tokenAudiences, audiences);
    if (shared.length === 0) {
      return {
        refused: `token audiences ${goQuotedList(tokenAudiences)} is invalid for the target audiences ${goQuotedList(audiences)}`,
      };
    }
    const now = clock.now();
    const refused =
      claims.type === 'issued' ? checkIssued(store, claims, now) : checkSecret(store, claims, digest, now);
    return refused === undefined ? { user, audiences: shared } : { refused };
  }

  const lookup = (token: string) => {
    const verdict = review(token, API_AUDIENCES);
    return verdict !== undefined && 'user' in verdict ? verdict.user : undefined;
  };
  return Object.assign(lookup, { review });
}

function userOf(claims: Claims): UserInfo {
  const { namespace, account } = claims;
  return serviceAccountUser(namespace, account, claims.type === 'issued' ? claims : {});
}

/** Returns why the token is invalid, or undefined if it is valid. */
function checkIssued(store: Store, claims: IssuedClaims, nowMs: number): string | undefined {
  const { namespace, account, pod, secret, node } = claims;
  if (claims.expiresAt * 1000 <= nowMs) return 'service account token has expired';
  if ((claims.issuedAt - CLOCK_SKEW_SECONDS) * 1000 > nowMs) return 'service account token is not valid yet';
  return (
    checkAccount(store, namespace, account, nowMs) ??
    (secret && checkBoundObject(store, ['secrets', `${namespace}/${secret.name}`], secret, nowMs)) ??
    (pod && checkBoundObject(store, ['pods', `${namespace}/${pod.name}`], pod, nowMs)) ??
    // The node of a pod is informative only: the token ends with the pod.
    (node && pod === undefined ? checkBoundObject(store, ['nodes', node.name], node, nowMs) : undefined)
  );
}

function checkSecret(store: Store, claims: SecretClaims, digest: string, nowMs: number): string | undefined {
  const { namespace, account, secretName } = claims;
  const id = `${namespace}/${secretName}`;
  const life = lifetimeOf(store, 'secrets', id);
  if (life === undefined || life.endsAtMs !== undefined) return 'Token has been invalidated';
  const secret = readSecretToken(store, id);
  if (secret?.digest !== digest) return "Token does not match server's copy";
  const accountError = checkAccount(store, namespace, account, nowMs);
  if (accountError !== undefined || !secret.invalidated) return accountError;
  return `the token in secret ${id} for service account ${namespace}/${account.name} has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the 'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token`;
}

function checkAccount(store: Store, namespace: string, { name, uid }: Reference, nowMs: number): string | undefined {
  const life = lifetimeOf(store, 'serviceaccounts', `${namespace}/${name}`);
  if (life === undefined) return `serviceaccounts "${name}" not found`;
  if (life.uid !== uid) return `service account UID (${life.uid}) does not match claim (${uid})`;
  return hasLifetimeEnded(life, nowMs) ? `service account ${namespace}/${name} has been deleted` : undefined;
}

const KINDS: Readonly<Record<string, string>> = { secrets: 'secret', pods: 'pod', nodes: 'node' };

function checkBoundObject(store: Store, at: [collection: string, id: string], bound: Reference, nowMs: number) {
  const life = lifetimeOf(store, ...at);
  if (life === undefined || hasLifetimeEnded(life, nowMs)) return INVALIDATED;
  if (life.uid === bound.uid) return undefined;
  const kind = KINDS[at[0]]!;
  return `${kind} UID (${life.uid}) does not match service account ${kind} ref claim (${bound.uid})`;
}

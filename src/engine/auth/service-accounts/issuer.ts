/** Issues service account tokens: signs claims as a JWT (ES256, RFC 7515 compact form). */
import { sign } from 'node:crypto';
import { encodeClaims, type Claims, type IssuedClaims } from '#engine/auth/service-accounts/claims.ts';
import type { SigningKey } from '#engine/auth/service-accounts/signing-key.ts';
import { newUid } from '#lib/ids.ts';

export type TokenRequestSpec = Pick<IssuedClaims, 'namespace' | 'account' | 'audiences' | 'pod' | 'secret' | 'node'> & {
  readonly lifetimeSeconds: number;
  readonly warnAfterSeconds?: number | undefined;
};

interface IssuedToken {
  readonly token: string;
  readonly id: string;
}

/** Issues a token that is valid from now on. */
export function issueToken(key: SigningKey, spec: TokenRequestSpec, nowMs: number): IssuedToken {
  const { lifetimeSeconds, warnAfterSeconds, ...about } = spec;
  const issuedAt = Math.floor(nowMs / 1000);
  const warnAfter = warnAfterSeconds === undefined ? undefined : issuedAt + warnAfterSeconds;
  const id = newUid();
  const claims: Claims = {
    type: 'issued',
    ...about,
    issuedAt,
    expiresAt: issuedAt + lifetimeSeconds,
    ...(warnAfter === undefined ? {} : { warnAfter }),
    id,
  };
  return { token: signToken(key, encodeClaims(claims)), id };
}

/** Signs a payload as a JWT. */
export function signToken(key: SigningKey, payload: Readonly<Record<string, unknown>>): string {
  const signed = `${part({ alg: 'ES256', kid: key.id })}.${part(payload)}`;
  const signature = sign('sha256', Buffer.from(signed), { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
  return `${signed}.${signature.toString('base64url')}`;
}

function part(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

/** Makes service account tokens: claims to a signed JWT (ES256, RFC 7515 compact form). */
import { sign } from 'node:crypto';
import { encodeClaims, type Claims, type IssuedClaims } from '#engine/auth/service-accounts/claims.ts';
import type { SigningKey } from '#engine/auth/service-accounts/signing-key.ts';
import { newUid } from '#lib/ids.ts';

export type TokenWish = Pick<IssuedClaims, 'namespace' | 'account' | 'audiences' | 'pod' | 'secret' | 'node'> & {
  readonly lifetimeSeconds: number;
  readonly warnAfterSeconds?: number | undefined;
};

export interface IssuedToken {
  readonly token: string;
  readonly id: string;
}

/** A token that holds from now on. */
export function issueToken(key: SigningKey, wish: TokenWish, nowMs: number): IssuedToken {
  const { lifetimeSeconds, warnAfterSeconds, ...about } = wish;
  const issuedAt = Math.floor(nowMs / 1000);
  const warnAfter = warnAfterSeconds === undefined ? undefined : issuedAt + warnAfterSeconds;
  const id = newUid();
  const claims: Claims = {
    sort: 'issued',
    ...about,
    issuedAt,
    expiresAt: issuedAt + lifetimeSeconds,
    ...(warnAfter === undefined ? {} : { warnAfter }),
    id,
  };
  return { token: signToken(key, encodeClaims(claims)), id };
}

/** The signed JWT of a payload. */
export function signToken(key: SigningKey, payload: Readonly<Record<string, unknown>>): string {
  const signed = `${part({ alg: 'ES256', kid: key.id })}.${part(payload)}`;
  const signature = sign('sha256', Buffer.from(signed), { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
  return `${signed}.${signature.toString('base64url')}`;
}

function part(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

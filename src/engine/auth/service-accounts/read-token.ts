/** Verifies a JWT and returns the claims that our key signed. Accepts any input: bounded, and never throws. */
import { verify } from 'node:crypto';
import { decodeClaims, ISSUER, SECRET_ISSUER, type Claims } from '#engine/auth/service-accounts/claims.ts';
import type { SigningKey } from '#engine/auth/service-accounts/signing-key.ts';
import { MAX_HEADER_BYTES } from '#engine/request/limits.ts';
import { isRecord } from '#kube/meta.ts';

/** The reason with Kubernetes' message, for TokenReviews. */
export interface RefusedToken {
  readonly refused: string;
}

const BAD_SIGNATURE: RefusedToken = { refused: 'square/go-jose: error in cryptographic primitive' };
const UNKNOWN_KEY: RefusedToken = { refused: 'invalid signature, no keys found' };
const OUR_ISSUERS: ReadonlySet<unknown> = new Set([ISSUER, SECRET_ISSUER]);
/** Longer tokens do not fit into a request. */
const MAX_TOKEN_LENGTH = MAX_HEADER_BYTES;
/** An ES256 signature: two numbers of 32 bytes. */
const SIGNATURE_BYTES = 64;

/** Returns undefined if the token does not claim to be ours. */
export function readToken(token: string, key: SigningKey): Claims | RefusedToken | undefined {
  if (token.length > MAX_TOKEN_LENGTH) return undefined;
  const [head = '', body = '', tail = '', ...more] = token.split('.', 4);
  if (head === '' || body === '' || tail === '' || more.length > 0) return undefined;
  const payload = jsonOf(body);
  if (!isRecord(payload) || !OUR_ISSUERS.has(payload['iss'])) return undefined;
  const header = jsonOf(head);
  if (!isRecord(header)) return undefined;
  // The algorithm is fixed, never chosen by the token: this rejects `none` and HMAC with the public key.
  if (header['alg'] !== 'ES256' || header['crit'] !== undefined) return BAD_SIGNATURE;
  if (header['kid'] !== undefined && header['kid'] !== key.id) return UNKNOWN_KEY;
  const signature = Buffer.from(tail, 'base64url');
  // Accepts only one encoding of each signature, although the decoder accepts several.
  if (signature.length !== SIGNATURE_BYTES || signature.toString('base64url') !== tail) return BAD_SIGNATURE;
  const signed = Buffer.from(`${head}.${body}`);
  if (!verify('sha256', signed, { key: key.publicKey, dsaEncoding: 'ieee-p1363' }, signature)) return BAD_SIGNATURE;
  return decodeClaims(payload);
}

function jsonOf(part: string): unknown {
  try {
    return JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}

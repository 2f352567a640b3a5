/**
 * Authenticates requests: by client certificate, else by bearer token, else as system:anonymous. As in kube-apiserver,
 * the first valid credential wins, and an invalid one is answered with 401 even if an anonymous request would be
 * served.
 */
import type { X509Certificate } from 'node:crypto';
import { ANONYMOUS_USER, asAuthenticated } from '#engine/auth/groups.ts';
import type { TokenLookup } from '#engine/auth/tokens.ts';
import type { UserInfo } from '#engine/request/request.ts';
import { unauthorized } from '#kube/api-error.ts';

export interface Evidence {
  /**
   * The result of `userOfPeerCertificate`, computed once per connection. Undefined if the client sent no certificate;
   * 'untrusted' if TLS could not verify it against our CA.
   */
  readonly peerCertificate?: UserInfo | 'untrusted' | undefined;
  /** The Authorization header. */
  readonly authorization?: string | undefined;
}

/** Throws ApiError Unauthorized. */
export type Authenticator = (evidence: Evidence) => UserInfo;

export function createAuthenticator({ tokens }: { tokens: TokenLookup }): Authenticator {
  return ({ peerCertificate, authorization }) => {
    if (peerCertificate !== undefined && peerCertificate !== 'untrusted') return peerCertificate;
    const token = bearerToken(authorization);
    const user = token === undefined ? undefined : tokens(token);
    if (user !== undefined) return user;
    if (token !== undefined || peerCertificate === 'untrusted') throw unauthorized();
    return ANONYMOUS_USER;
  };
}

/** Schemes other than Bearer are ignored and count as no credentials, as in kube-apiserver. */
function bearerToken(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined;
  const [scheme, token] = authorization.trim().split(' ', 2);
  return scheme?.toLowerCase() === 'bearer' && token !== undefined && token !== '' ? token : undefined;
}

/**
 * Returns the user of a certificate that TLS verified against our CA: CN is the name, each O a group, and
 * system:authenticated is added. Undefined without a CN. Call once per connection.
 */
export function userOfPeerCertificate(certificate: X509Certificate): UserInfo | undefined {
  // The `subject` text escapes values; the legacy object has the raw values.
  const subject = certificate.toLegacyObject().subject as { CN?: string | string[]; O?: string | string[] };
  // Go, and so Kubernetes, uses the last of several common names.
  const name = [subject.CN ?? ''].flat().at(-1) ?? '';
  return name === '' ? undefined : asAuthenticated({ name, groups: [subject.O ?? []].flat() });
}

/**
 * Who asks: a client certificate, else a bearer token, else nobody (system:anonymous). As in kube-apiserver, the
 * first proof that holds wins, and a proof that fails is 401 even where an anonymous request would be served.
 */
import type { X509Certificate } from 'node:crypto';
import { ANONYMOUS_USER, asAuthenticated } from '#engine/auth/groups.ts';
import type { TokenLookup } from '#engine/auth/tokens.ts';
import type { UserInfo } from '#engine/request.ts';
import { unauthorized } from '#kube/api-error.ts';

export interface Evidence {
  /**
   * From `userOfPeerCertificate`, computed once for each connection; undefined when the client sent none;
   * 'untrusted' when it sent one that TLS could not verify against our CA.
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

/** Other schemes than Bearer are not ours to judge and count as no proof, as in kube-apiserver. */
function bearerToken(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined;
  const [scheme, token] = authorization.trim().split(' ', 2);
  return scheme?.toLowerCase() === 'bearer' && token !== undefined && token !== '' ? token : undefined;
}

/**
 * The user of a certificate that TLS has verified against our CA: CN is the name, each O a group, and
 * system:authenticated. Undefined without a CN: such a certificate names nobody. Call once for each connection.
 */
export function userOfPeerCertificate(certificate: X509Certificate): UserInfo | undefined {
  // The `subject` text is made for people and escapes values; the legacy object has them as they are.
  const subject = certificate.toLegacyObject().subject as { CN?: string | string[]; O?: string | string[] };
  // Of several common names Go, and so Kubernetes, takes the last.
  const name = [subject.CN ?? ''].flat().at(-1) ?? '';
  return name === '' ? undefined : asAuthenticated({ name, groups: [subject.O ?? []].flat() });
}

/**
 * Credentials that change while a process runs: a token file (token-source.ts), an exec plugin (exec-source.ts) or an
 * OIDC token (auth-provider.ts). A transport asks for the current credential before each request, and for another one
 * after the server refused it.
 */
import { TransportError } from '#client/transport.ts';

/** A bearer token, a client certificate with its key, or both. PEM. */
export interface ClientCredential {
  readonly token?: string | undefined;
  readonly clientCertificate?: string | undefined;
  readonly clientKey?: string | undefined;
}

export interface CredentialSource {
  /** Throws CredentialError if there is no credential, or the signal's reason on abort. */
  current(options?: { readonly signal?: AbortSignal | undefined }): Promise<ClientCredential>;
  /** Forgets a credential that the server has refused. Does nothing if another one has replaced it. */
  discard(refused: ClientCredential): void;
}

/** There is no usable credential. The message says what the user can do; a later attempt may succeed. */
export class CredentialError extends TransportError {
  override name = 'CredentialError';
}

/**
 * Returns another credential after the server refused one with 401, or undefined if the source has no other one. A
 * request is repeated only once with it.
 */
export async function replaceRefused(
  source: CredentialSource,
  refused: ClientCredential,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<ClientCredential | undefined> {
  source.discard(refused);
  const next = await source.current(options);
  const isSame = next.token === refused.token && next.clientCertificate === refused.clientCertificate;
  return isSame ? undefined : next;
}

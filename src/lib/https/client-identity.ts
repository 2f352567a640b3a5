/** The identity of a client in TLS, and whom it trusts. */
import { createSecureContext, type SecureContext } from 'node:tls';
import { ClientIdentityError } from '#lib/https/https-error.ts';

/** Certificates and keys are PEM. */
export interface ClientIdentity {
  /** The authorities of the server; undefined for the root certificates of the system. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** True to accept any server certificate. */
  readonly insecure?: boolean | undefined;
}

export function isSameIdentity(one: ClientIdentity, other: ClientIdentity): boolean {
  return one.ca === other.ca && one.cert === other.cert && one.key === other.key && one.insecure === other.insecure;
}

/** Throws ClientIdentityError. */
export function createTlsContext({ ca, cert, key }: ClientIdentity): SecureContext {
  // Node.js would ignore such an authority.
  if (ca !== undefined && !ca.includes('-----BEGIN CERTIFICATE-----')) {
    throw new ClientIdentityError('the authority has no certificate in PEM format');
  }
  try {
    return createSecureContext({ ca, cert, key, minVersion: 'TLSv1.2' });
  } catch (cause) {
    throw new ClientIdentityError((cause as Error).message, { cause });
  }
}

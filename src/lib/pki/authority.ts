/**
 * Certificate authorities as values: creates them, reads them from PEM and issues certificates. The callers store them
 * and decide when to renew them.
 */
import { X509Certificate, createPrivateKey, createPublicKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { makeCertificate, newKeyPair, privateKeyPem } from '#lib/pki/x509.ts';
import type { Purpose, CertificateSubject } from '#lib/pki/x509.ts';

/** Certificates are valid from this long before now, so that a client whose clock is slow accepts a new one. */
export const BACKDATED_MS = 60 * 60 * 1000;

export interface Authority {
  readonly subject: CertificateSubject;
  readonly certificate: X509Certificate;
  readonly pem: string;
  readonly privateKey: KeyObject;
}

export interface IssuedCertificate {
  readonly certPem: string;
  readonly keyPem: string;
}

interface Validity {
  readonly nowMs: number;
  readonly lifetimeMs: number;
}

interface IssueOptions extends Validity {
  readonly subject: CertificateSubject;
  readonly purpose: Purpose;
}

/** Creates an authority, with a new key unless one is given. */
export function makeAuthority(
  subject: CertificateSubject,
  { nowMs, lifetimeMs }: Validity,
  privateKey: KeyObject = newKeyPair().privateKey,
): Authority {
  const publicKey = createPublicKey(privateKey);
  const pem = makeCertificate({
    subject,
    publicKey,
    issuer: subject,
    issuerKey: privateKey,
    issuerPublicKey: publicKey,
    notBeforeMs: nowMs - BACKDATED_MS,
    notAfterMs: nowMs + lifetimeMs,
    purpose: { kind: 'authority' },
  });
  return { subject, certificate: new X509Certificate(pem), pem, privateKey };
}

/** Reads an authority. Throws if a text is invalid or the key does not belong to the certificate. */
export function readAuthority(subject: CertificateSubject, certPem: string, keyPem: string): Authority {
  const certificate = new X509Certificate(certPem);
  const privateKey = createPrivateKey(keyPem);
  if (!certificate.checkPrivateKey(privateKey)) throw new Error('the key does not belong to the certificate');
  return { subject, certificate, pem: certPem, privateKey };
}

/** Issues a certificate with a new key. */
export function issue(authority: Authority, options: IssueOptions): IssuedCertificate {
  const { publicKey, privateKey } = newKeyPair();
  return { certPem: issueForKey(authority, publicKey, options), keyPem: privateKeyPem(privateKey) };
}

/** Issues a certificate for a public key whose private key stays with its owner. */
export function issueForKey(
  { subject: issuer, certificate, privateKey }: Authority,
  publicKey: KeyObject,
  { subject, purpose, nowMs, lifetimeMs }: IssueOptions,
): string {
  return makeCertificate({
    subject,
    publicKey,
    issuer,
    issuerKey: privateKey,
    issuerPublicKey: certificate.publicKey,
    notBeforeMs: nowMs - BACKDATED_MS,
    // A certificate that outlives its CA would stop working without a visible reason.
    notAfterMs: Math.min(nowMs + lifetimeMs, certificate.validToDate.getTime()),
    purpose,
  });
}

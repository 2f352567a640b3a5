/**
 * Certificate authorities as values: made, read from PEM, and what they issue. Where they are kept, and when which one is
 * renewed, is decided by whoever has them.
 */
import { X509Certificate, createPrivateKey, createPublicKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { makeCertificate, newKeyPair, privateKeyPem } from '#lib/pki/x509.ts';
import type { Purpose, Subject } from '#lib/pki/x509.ts';

/** A client whose clock is a little behind must not refuse a fresh certificate. */
export const BACKDATED_MS = 60 * 60 * 1000;

export interface Authority {
  readonly subject: Subject;
  readonly certificate: X509Certificate;
  readonly pem: string;
  readonly privateKey: KeyObject;
}

export interface IssuedCertificate {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface Validity {
  readonly nowMs: number;
  readonly lifetimeMs: number;
}

export interface IssueOptions extends Validity {
  readonly subject: Subject;
  readonly purpose: Purpose;
}

/** With a new key, unless one is given. */
export function makeAuthority(
  subject: Subject,
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

/** Throws where the texts are not what they should be, or do not belong together. */
export function readAuthority(subject: Subject, certPem: string, keyPem: string): Authority {
  const certificate = new X509Certificate(certPem);
  const privateKey = createPrivateKey(keyPem);
  if (!certificate.checkPrivateKey(privateKey)) throw new Error('the key does not belong to the certificate');
  return { subject, certificate, pem: certPem, privateKey };
}

/** A certificate with a key of its own. */
export function issue(authority: Authority, options: IssueOptions): IssuedCertificate {
  const { publicKey, privateKey } = newKeyPair();
  return { certPem: issueFor(authority, publicKey, options), keyPem: privateKeyPem(privateKey) };
}

/** A certificate for somebody who keeps the key. */
export function issueFor(
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

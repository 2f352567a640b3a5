/** Checks whether a certificate was issued by one of the authorities of a bundle. */
import { X509Certificate } from 'node:crypto';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

export function certificatesIn(bundlePem: string): readonly X509Certificate[] {
  return (bundlePem.match(CERTIFICATE) ?? []).map((pem) => new X509Certificate(pem));
}

export function isIssuedBy(certificate: X509Certificate | undefined, bundlePem: string): boolean {
  if (certificate === undefined) return false;
  return certificatesIn(bundlePem).some((ca) => certificate.checkIssued(ca) && certificate.verify(ca.publicKey));
}

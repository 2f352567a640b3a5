/** The time at which our own certificates are renewed. */
import { X509Certificate } from 'node:crypto';
import { BACKDATED_MS, type IssuedCertificate } from '#lib/pki/authority.ts';

/** Fraction of its lifetime after which a certificate is renewed. */
const RENEW_AT = 0.5;

/** Reports whether a certificate has to be renewed. */
export function isRenewalDue({ certPem }: Pick<IssuedCertificate, 'certPem'>, nowMs: number): boolean {
  const { validFromDate, validToDate } = new X509Certificate(certPem);
  const from = validFromDate.getTime() + BACKDATED_MS;
  return nowMs >= from + (validToDate.getTime() - from) * RENEW_AT;
}

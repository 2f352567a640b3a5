/** The time at which a certificate is renewed: at half of its lifetime. */
import { X509Certificate } from 'node:crypto';

/** Fraction of its lifetime after which a certificate is renewed. */
const RENEW_AT = 0.5;
/** Fraction of its lifetime at which it is checked. */
const CHECK_EVERY = 1 / 20;

interface RenewalOptions {
  /** Time by which the issuer moves the start of the validity to the past; it does not belong to the lifetime. */
  readonly backdatedMs?: number;
}

/** Reports whether a certificate has to be renewed. */
export function isRenewalDue(certPem: string, nowMs: number, options: RenewalOptions = {}): boolean {
  const { fromMs, lifetimeMs } = readLifetime(certPem, options);
  return nowMs >= fromMs + lifetimeMs * RENEW_AT;
}

/** Returns the interval of checks, which is short for short-lived certificates. */
export function renewalCheckMs(
  certPem: string,
  { minMs, maxMs, ...options }: RenewalOptions & { readonly minMs: number; readonly maxMs: number },
): number {
  return Math.max(minMs, Math.min(maxMs, readLifetime(certPem, options).lifetimeMs * CHECK_EVERY));
}

function readLifetime(certPem: string, { backdatedMs = 0 }: RenewalOptions) {
  const { validFromDate, validToDate } = new X509Certificate(certPem);
  const fromMs = validFromDate.getTime() + backdatedMs;
  return { fromMs, lifetimeMs: validToDate.getTime() - fromMs };
}

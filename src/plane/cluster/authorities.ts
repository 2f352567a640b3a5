/**
 * Our certificate authorities on a cluster, oldest first. Pure except for new keys.
 *
 *   created ── one lifetime of a certificate ──► signs ── half of its own lifetime ──► the next one is created
 *                                                                          the old one is trusted until it expires
 *
 * Every component renews its certificate before it expires and gets all authorities with it. So an authority that is as
 * old as the lifetime of a certificate is known to all components.
 */
import { X509Certificate } from 'node:crypto';
import { BACKDATED_MS, makeAuthority, readAuthority, type Authority } from '#lib/pki/authority.ts';

export interface Lifetimes {
  readonly authorityMs: number;
  readonly certificateMs: number;
}

/** Minimum ratio of the lifetimes of an authority and of the certificates that it signs. */
export const MIN_RATIO = 4;

/** Returns the authorities without expired ones, and with a new one if the newest has passed half of its lifetime. */
export function nextAuthorities(
  current: readonly Authority[],
  nowMs: number,
  lifetimes: Lifetimes,
): readonly Authority[] {
  const valid = current.filter((one) => expiryOf(one) > nowMs);
  const newest = valid.at(-1);
  const isYoung = newest !== undefined && expiryOf(newest) - nowMs > (expiryOf(newest) - createdAtMs(newest)) / 2;
  if (isYoung) return valid.length === current.length ? current : valid;
  const created = makeAuthority({ commonName: `selfsame-ca-${nowMs}` }, { nowMs, lifetimeMs: lifetimes.authorityMs });
  return [...valid, created];
}

/** Returns the authority that signs: the newest that all components know, or the oldest if there is none. */
export function signerOf(authorities: readonly Authority[], nowMs: number, { certificateMs }: Lifetimes): Authority {
  const knownToAll = authorities.filter((one) => nowMs - createdAtMs(one) >= certificateMs);
  const signer = knownToAll.at(-1) ?? authorities[0];
  if (signer === undefined) throw new Error('Cannot sign a certificate: there is no certificate authority');
  return signer;
}

/** Returns all certificates as one PEM text. */
export function bundleOf(authorities: readonly Authority[]): string {
  return authorities.map(({ pem }) => pem).join('');
}

const expiryOf = ({ certificate }: Authority) => certificate.validToDate.getTime();
const createdAtMs = ({ certificate }: Authority) => certificate.validFromDate.getTime() + BACKDATED_MS;

/** Returns the data of the Secret: PEM in base64, named by the creation time. */
export function authoritiesToData(authorities: readonly Authority[]): Record<string, string> {
  const base64 = (text: string) => Buffer.from(text, 'utf8').toString('base64');
  return Object.fromEntries(
    authorities.flatMap((authority) => {
      const name = String(createdAtMs(authority)).padStart(16, '0');
      const key = authority.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
      return [
        [`${name}.crt`, base64(authority.pem)],
        [`${name}.key`, base64(key)],
      ];
    }),
  );
}

/** Throws if the data is damaged: new authorities would lock out all components that trust the old ones. */
export function authoritiesFromData(data: Readonly<Record<string, string>>): readonly Authority[] {
  const text = (name: string) => Buffer.from(data[name] ?? '', 'base64').toString('utf8');
  const names = Object.keys(data).filter((name) => /^\d{16}\.crt$/.test(name));
  return names.toSorted().map((name) => {
    const certPem = text(name);
    try {
      return readAuthority({ commonName: commonNameOf(certPem) }, certPem, text(name.replace(/crt$/, 'key')));
    } catch (cause) {
      throw new Error(`Cannot use the certificate authority ${name}: ${(cause as Error).message}`, { cause });
    }
  });
}

/** Returns the name of an authority. Each has its own, because certificates name their issuer. */
function commonNameOf(certPem: string): string {
  const name = /CN=([^\n,]+)/.exec(new X509Certificate(certPem).subject)?.[1];
  if (name === undefined) throw new Error('its certificate has no common name');
  return name;
}

/**
 * Our own certificate authorities on a cluster, in the order in which they were made. Pure but for new keys.
 *
 *   made ── all who trust us have it (as long as a certificate lasts) ──► signs ── half of its time ──► the next is made
 *                                                                                    the old one is trusted until it ends
 *
 * Whoever holds a certificate of ours renews it before it ends, and gets all authorities with it. So an authority that has
 * been known for as long as a certificate lasts is known to everybody.
 */
import { X509Certificate } from 'node:crypto';
import { BACKDATED_MS, makeAuthority, readAuthority, type Authority } from '#lib/pki/authority.ts';

export interface Lifetimes {
  readonly authorityMs: number;
  readonly certificateMs: number;
}

/** An authority lasts so many times longer than what it signs, at least. */
export const MIN_RATIO = 4;

/** Those that should be there: what has ended is gone, what is half over has a successor. */
export function nextAuthorities(
  known: readonly Authority[],
  nowMs: number,
  lifetimes: Lifetimes,
): readonly Authority[] {
  const alive = known.filter((one) => endOf(one) > nowMs);
  const newest = alive.at(-1);
  const isYoung = newest !== undefined && endOf(newest) - nowMs > (endOf(newest) - madeAt(newest)) / 2;
  if (isYoung) return alive.length === known.length ? known : alive;
  const made = makeAuthority({ commonName: `selfsame-ca-${nowMs}` }, { nowMs, lifetimeMs: lifetimes.authorityMs });
  return [...alive, made];
}

/** The one that signs now: the newest that everybody knows, or the oldest where none is known for long. */
export function signerOf(authorities: readonly Authority[], nowMs: number, { certificateMs }: Lifetimes): Authority {
  const known = authorities.filter((one) => nowMs - madeAt(one) >= certificateMs);
  const signer = known.at(-1) ?? authorities[0];
  if (signer === undefined) throw new Error('Cannot sign a certificate: there is no authority');
  return signer;
}

/** PEM of all of them. */
export function bundleOf(authorities: readonly Authority[]): string {
  return authorities.map(({ pem }) => pem).join('');
}

const endOf = ({ certificate }: Authority) => certificate.validToDate.getTime();
const madeAt = ({ certificate }: Authority) => certificate.validFromDate.getTime() + BACKDATED_MS;

/** As the data of a Secret: base64 of PEM, with the time of their making as the name. */
export function authoritiesToData(authorities: readonly Authority[]): Record<string, string> {
  const base64 = (text: string) => Buffer.from(text, 'utf8').toString('base64');
  return Object.fromEntries(
    authorities.flatMap((authority) => {
      const name = String(madeAt(authority)).padStart(16, '0');
      const key = authority.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
      return [
        [`${name}.crt`, base64(authority.pem)],
        [`${name}.key`, base64(key)],
      ];
    }),
  );
}

/** Throws where the data is damaged: to go on with new ones would shut everybody out who trusts the old. */
export function authoritiesFromData(data: Readonly<Record<string, string>>): readonly Authority[] {
  const text = (name: string) => Buffer.from(data[name] ?? '', 'base64').toString('utf8');
  const names = Object.keys(data).filter((name) => /^\d{16}\.crt$/.test(name));
  return names.toSorted().map((name) => {
    const certPem = text(name);
    try {
      return readAuthority({ commonName: commonNameIn(certPem) }, certPem, text(name.replace(/crt$/, 'key')));
    } catch (cause) {
      throw new Error(`Cannot use the authority ${name}: ${(cause as Error).message}`, { cause });
    }
  });
}

/** Each has a name of its own; what it signs says it. */
function commonNameIn(certPem: string): string {
  const name = /CN=([^\n,]+)/.exec(new X509Certificate(certPem).subject)?.[1];
  if (name === undefined) throw new Error('it has no name');
  return name;
}

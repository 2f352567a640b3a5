/**
 * Keeps our authorities in a Secret that all of our processes share, and the certificates of this process: whoever holds
 * one is told when there is a newer. Nothing is written where nothing is due; of two who write, one reads again.
 */
import { X509Certificate, createPublicKey } from 'node:crypto';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { delay } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import { SECRETS, type Secret } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { BACKDATED_MS, issue, issueFor, type Authority, type IssuedCertificate } from '#lib/pki/authority.ts';
import { isIssuedBy } from '#lib/pki/issued-by.ts';
import type { Purpose, Subject } from '#lib/pki/x509.ts';
import { AUTHORITY_SECRET } from '#operator/objects/cluster.ts';
import type { Trust } from '#operator/trust.ts';
import {
  authoritiesFromData,
  authoritiesToData,
  bundleOf,
  nextAuthorities,
  signerOf,
  type Lifetimes,
} from '#plane/cluster/authorities.ts';

const NAME = { namespace: SYSTEM_NAMESPACE, name: AUTHORITY_SECRET };
const TRIES = 5;
/** A certificate is renewed when so much of its time is over. */
const RENEW_AT = 0.5;
const MIN_LOOK_MS = 500;
const MAX_LOOK_MS = 5 * 60_000;

export interface AuthorityKeeperOptions {
  /** May read and write the Secret. */
  readonly client: Pick<Client, 'get' | 'create' | 'update'>;
  readonly lifetimes: Lifetimes;
  readonly clock: Clock;
  readonly log: Log;
}

export interface CertificateWish {
  readonly subject: Subject;
  readonly purpose: Purpose;
}

/** A certificate and its key, and whom to trust: always the newest. */
export interface HeldIdentity {
  now(): IssuedCertificate & { readonly ca: string };
}

interface Held {
  readonly wish: CertificateWish;
  issued: IssuedCertificate;
}

export class AuthorityKeeper implements Trust {
  readonly #options: AuthorityKeeperOptions;
  readonly #held: Held[] = [];
  readonly #listeners = new Set<() => void>();
  #authorities: readonly Authority[];

  private constructor(options: AuthorityKeeperOptions, authorities: readonly Authority[]) {
    this.#options = options;
    this.#authorities = authorities;
  }

  /** Reads the authorities, or makes the first. */
  static async open(options: AuthorityKeeperOptions): Promise<AuthorityKeeper> {
    return new AuthorityKeeper(options, await ensureAuthorities(options));
  }

  bundle(): string {
    return bundleOf(this.#authorities);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Renewed for as long as this lives. */
  hold(wish: CertificateWish): HeldIdentity {
    const held: Held = { wish, issued: this.#issue(wish) };
    this.#held.push(held);
    return { now: () => ({ ...held.issued, ca: this.bundle() }) };
  }

  /** For somebody who keeps the key. Throws where it is none. */
  sign(publicKeyPem: string, { subject, purpose }: CertificateWish): string {
    const { clock, lifetimes } = this.#options;
    const nowMs = clock.now();
    const validity = { nowMs, lifetimeMs: lifetimes.certificateMs };
    return issueFor(signerOf(this.#authorities, nowMs, lifetimes), createPublicKey(publicKeyPem), {
      ...validity,
      subject,
      purpose,
    });
  }

  /** Looks until the signal aborts whether something is due. */
  async run({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    const { clock, log, lifetimes } = this.#options;
    const lookMs = Math.min(MAX_LOOK_MS, Math.max(MIN_LOOK_MS, lifetimes.certificateMs / 20));
    for (;;) {
      await delay(clock, lookMs, { signal });
      if (signal.aborted) return;
      try {
        await this.#look();
      } catch (err) {
        log.warn({ err }, 'Cannot look after our certificates; trying again');
      }
    }
  }

  async #look(): Promise<void> {
    const { clock, log } = this.#options;
    const before = this.bundle();
    this.#authorities = await ensureAuthorities(this.#options);
    let isNew = this.bundle() !== before;
    for (const held of this.#held) {
      // Where somebody has taken the authorities away, what they signed is of no use any more.
      if (!isDue(held.issued, clock.now()) && isOf(held.issued, this.bundle())) continue;
      held.issued = this.#issue(held.wish);
      log.info({ name: held.wish.subject.commonName }, 'renewed a certificate');
      isNew = true;
    }
    if (isNew) for (const listener of this.#listeners) listener();
  }

  #issue({ subject, purpose }: CertificateWish): IssuedCertificate {
    const { clock, lifetimes } = this.#options;
    const nowMs = clock.now();
    const signer = signerOf(this.#authorities, nowMs, lifetimes);
    return issue(signer, { subject, purpose, nowMs, lifetimeMs: lifetimes.certificateMs });
  }
}

/** Whether a certificate has so little time left that it is to be renewed. */
export function isDue({ certPem }: Pick<IssuedCertificate, 'certPem'>, nowMs: number): boolean {
  const { validFromDate, validToDate } = new X509Certificate(certPem);
  const from = validFromDate.getTime() + BACKDATED_MS;
  return nowMs >= from + (validToDate.getTime() - from) * RENEW_AT;
}

const isOf = ({ certPem }: IssuedCertificate, bundle: string) => isIssuedBy(new X509Certificate(certPem), bundle);

async function ensureAuthorities({
  client,
  lifetimes,
  clock,
  log,
}: AuthorityKeeperOptions): Promise<readonly Authority[]> {
  for (let tries = 1; ; tries++) {
    const secret = await find(client);
    const known = authoritiesFromData(secret?.data ?? {});
    const next = nextAuthorities(known, clock.now(), lifetimes);
    if (next === known) return known;
    try {
      await store(client, secret, authoritiesToData(next));
      log.info({ authorities: next.length }, 'made a certificate authority for our services and nodes');
      return next;
    } catch (error) {
      // Somebody else was quicker: theirs counts.
      const isRace = isApiError(error, 'Conflict') || isApiError(error, 'AlreadyExists');
      if (!isRace || tries === TRIES) throw error;
    }
  }
}

async function find(client: Pick<Client, 'get'>): Promise<Stored<Secret> | undefined> {
  try {
    return await client.get(SECRETS, NAME);
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}

async function store(
  client: Pick<Client, 'create' | 'update'>,
  present: Stored<Secret> | undefined,
  data: Record<string, string>,
): Promise<void> {
  if (present !== undefined) await client.update(SECRETS, { ...present, data });
  else await client.create(SECRETS, { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata: { ...NAME }, data });
}

/**
 * Keeps our certificate authorities in a Secret that all controllers processes share, and renews the certificates of
 * this process. Listeners are notified of each renewal. If two processes write at the same time, one of them reads
 * again.
 */
import { X509Certificate, createPublicKey } from 'node:crypto';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { delay } from '#client/abort.ts';
import { getIfExists } from '#client/get-if-exists.ts';
import type { Client } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import { SECRETS, type Secret } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { BACKDATED_MS, issue, issueForKey, type Authority, type IssuedCertificate } from '#lib/pki/authority.ts';
import { isRenewalDue } from '#lib/pki/renewal.ts';
import { isIssuedBy } from '#lib/pki/issued-by.ts';
import type { Purpose, CertificateSubject } from '#lib/pki/x509.ts';
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
const MAX_ATTEMPTS = 5;
const MIN_CHECK_MS = 500;
const MAX_CHECK_MS = 5 * 60_000;

interface AuthorityKeeperOptions {
  /** A client that may read and write the Secret. */
  readonly client: Pick<Client, 'get' | 'create' | 'update'>;
  readonly lifetimes: Lifetimes;
  readonly clock: Clock;
  readonly log: Log;
}

interface CertificateRequest {
  readonly subject: CertificateSubject;
  readonly purpose: Purpose;
}

/** The current certificate with its key and the authorities to trust. */
interface HeldIdentity {
  now(): IssuedCertificate & { readonly ca: string };
}

interface HeldCertificate {
  readonly request: CertificateRequest;
  issued: IssuedCertificate;
}

export class AuthorityKeeper implements Trust {
  readonly #options: AuthorityKeeperOptions;
  readonly #held: HeldCertificate[] = [];
  readonly #listeners = new Set<() => void>();
  #authorities: readonly Authority[];

  private constructor(options: AuthorityKeeperOptions, authorities: readonly Authority[]) {
    this.#options = options;
    this.#authorities = authorities;
  }

  /** Reads the authorities, or creates the first one. */
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

  /** Issues a certificate that is renewed while this runs. */
  hold(request: CertificateRequest): HeldIdentity {
    const held: HeldCertificate = { request, issued: this.#issue(request) };
    this.#held.push(held);
    return { now: () => ({ ...held.issued, ca: this.bundle() }) };
  }

  /** Signs a certificate for a public key. Throws if the key is invalid. */
  sign(publicKeyPem: string, { subject, purpose }: CertificateRequest): string {
    const { clock, lifetimes } = this.#options;
    const nowMs = clock.now();
    const validity = { nowMs, lifetimeMs: lifetimes.certificateMs };
    return issueForKey(signerOf(this.#authorities, nowMs, lifetimes), createPublicKey(publicKeyPem), {
      ...validity,
      subject,
      purpose,
    });
  }

  /** Renews whatever is due, until the signal aborts. */
  async run({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    const { clock, log, lifetimes } = this.#options;
    const intervalMs = Math.min(MAX_CHECK_MS, Math.max(MIN_CHECK_MS, lifetimes.certificateMs / 20));
    for (;;) {
      await delay(clock, intervalMs, { signal });
      if (signal.aborted) return;
      try {
        await this.#renewDue();
      } catch (err) {
        log.warn({ err }, 'Cannot renew our certificates; retrying');
      }
    }
  }

  async #renewDue(): Promise<void> {
    const { clock, log } = this.#options;
    const before = this.bundle();
    this.#authorities = await ensureAuthorities(this.#options);
    let isChanged = this.bundle() !== before;
    for (const held of this.#held) {
      // If the Secret was deleted, certificates of the old authorities are not trusted any more.
      if (
        !isRenewalDue(held.issued.certPem, clock.now(), { backdatedMs: BACKDATED_MS }) &&
        isIssuedByBundle(held.issued, this.bundle())
      )
        continue;
      held.issued = this.#issue(held.request);
      log.info({ name: held.request.subject.commonName }, 'Renewed a certificate');
      isChanged = true;
    }
    if (isChanged) for (const listener of this.#listeners) listener();
  }

  #issue({ subject, purpose }: CertificateRequest): IssuedCertificate {
    const { clock, lifetimes } = this.#options;
    const nowMs = clock.now();
    const signer = signerOf(this.#authorities, nowMs, lifetimes);
    return issue(signer, { subject, purpose, nowMs, lifetimeMs: lifetimes.certificateMs });
  }
}

const isIssuedByBundle = ({ certPem }: IssuedCertificate, bundle: string) =>
  isIssuedBy(new X509Certificate(certPem), bundle);

async function ensureAuthorities({
  client,
  lifetimes,
  clock,
  log,
}: AuthorityKeeperOptions): Promise<readonly Authority[]> {
  for (let attempt = 1; ; attempt++) {
    const secret = await getIfExists(client, SECRETS, NAME);
    const current = authoritiesFromData(secret?.data ?? {});
    const next = nextAuthorities(current, clock.now(), lifetimes);
    if (next === current) return current;
    try {
      await storeSecret(client, secret, authoritiesToData(next));
      log.info({ authorities: next.length }, 'Created a certificate authority for our services and nodes');
      return next;
    } catch (error) {
      // Another process was faster: its authority counts.
      const isRace = isApiError(error, 'Conflict') || isApiError(error, 'AlreadyExists');
      if (!isRace || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}

async function storeSecret(
  client: Pick<Client, 'create' | 'update'>,
  present: Stored<Secret> | undefined,
  data: Record<string, string>,
): Promise<void> {
  if (present !== undefined) await client.update(SECRETS, { ...present, data });
  else await client.create(SECRETS, { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata: { ...NAME }, data });
}

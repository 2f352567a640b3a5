/**
 * The client certificate of a node at the API server of a cluster. At half of its lifetime the node requests the next
 * one as itself, like a kubelet. The cluster approves it for authorized nodes (selfnodeclient), or an administrator
 * does.
 *
 *   valid ── half of its lifetime ──► requested ── signed ──► installed, valid again
 *                                       │ ▲ denied, deleted, or not decided: requested again later
 *                                       └─┘
 */
import { X509Certificate } from 'node:crypto';
import { delay } from '#client/abort.ts';
import { getIfExists } from '#client/get-if-exists.ts';
import type { Client } from '#client/client.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { isRenewalDue, renewalCheckMs } from '#lib/pki/renewal.ts';
import { newKeyPair, privateKeyPem, type KeyPair } from '#lib/pki/x509.ts';
import { requestSigning, signingOutcomeOf, SIGNING_REQUESTS } from '#plane/node/signing-requests.ts';

const MAX_CHECK_MS = 60 * 60_000;
const CHECK_RANGE = { minMs: 1000, maxMs: MAX_CHECK_MS };
/** Backoff between checks of a pending request. */
const CHECK_BACKOFF = { firstMs: 1000, maxMs: 60_000 };
/**
 * Age at which a new request is created: the cluster decides each only once, and may allow it now. It deletes old ones.
 */
const MAX_REQUEST_AGE_MS = 60 * 60_000;
/** Number of checks after which a warning asks the user to approve the request. */
const CHECKS_BEFORE_WARNING = 8;

/** A client certificate with its key, as PEM. */
export interface NodeClientCertificate {
  readonly certPem: string;
  readonly keyPem: string;
}

interface NodeCertificateOptions {
  /** A client with the identity of the node. */
  readonly client: Pick<Client, 'create' | 'get'>;
  readonly name: string;
  /** Returns the PEM of the current certificate, or undefined if the node authenticates otherwise. */
  current(): string | undefined;
  /** Stores the new certificate and uses it. */
  install(certificate: NodeClientCertificate): Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

interface PendingRequest {
  readonly request: string;
  readonly keys: KeyPair;
  readonly atMs: number;
  readonly checks: number;
}

/** Renews the certificate until the signal aborts. */
export async function keepNodeCertificate(
  options: NodeCertificateOptions,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const { clock, log } = options;
  let pending: PendingRequest | undefined;
  while (!signal.aborted) {
    try {
      pending = await renewIfDue(options, pending, signal);
    } catch (err) {
      const until = expiryText(options.current());
      if (!signal.aborted) log.warn({ err, until }, 'Cannot renew the certificate of this node; retrying');
    }
    const current = options.current();
    const checkMs = current === undefined ? MAX_CHECK_MS : renewalCheckMs(current, CHECK_RANGE);
    await delay(clock, pending === undefined ? checkMs : backoffMs(pending.checks, CHECK_BACKOFF), { signal });
  }
}

/** Does the next step of a renewal, and returns the request if it is still pending. */
async function renewIfDue(
  options: NodeCertificateOptions,
  before: PendingRequest | undefined,
  signal: AbortSignal,
): Promise<PendingRequest | undefined> {
  const { client, name, clock, log } = options;
  const current = options.current();
  // An administrator may have renewed it meanwhile.
  if (current === undefined || !isRenewalDue(current, clock.now())) return undefined;
  const pending = before ?? { ...(await createRequest(client, name, signal)), atMs: clock.now() };
  const request = await getIfExists(client, SIGNING_REQUESTS, { name: pending.request }, { signal });
  // The cluster deletes requests that are not approved.
  if (request === undefined) return undefined;
  const outcome = signingOutcomeOf(request);
  if (outcome === 'waiting') {
    if (clock.now() - pending.atMs >= MAX_REQUEST_AGE_MS) return undefined;
    if (pending.checks === CHECKS_BEFORE_WARNING)
      log.warn({ until: expiryText(current) }, approvalHint(pending.request));
    return { ...pending, checks: pending.checks + 1 };
  }
  if ('refused' in outcome) {
    log.warn(
      { until: expiryText(current) },
      `Cannot renew the certificate of this node: the cluster denied the request: ${outcome.refused}`,
    );
    return undefined;
  }
  await options.install({ certPem: outcome.certPem, keyPem: privateKeyPem(pending.keys.privateKey) });
  return undefined;
}

async function createRequest(
  client: Pick<Client, 'create'>,
  name: string,
  signal: AbortSignal,
): Promise<Omit<PendingRequest, 'atMs'>> {
  const keys = newKeyPair();
  const { metadata } = await requestSigning(client, name, keys, { signal });
  return { request: metadata.name, keys, checks: 1 };
}

const approvalHint = (request: string) =>
  `The next certificate of this node is not approved yet; run kubectl certificate approve ${request}`;

function expiryText(certPem: string | undefined): string | undefined {
  return certPem === undefined ? undefined : new X509Certificate(certPem).validToDate.toISOString();
}

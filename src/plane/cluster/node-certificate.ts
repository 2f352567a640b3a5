/**
 * The certificate by which a node comes to the API server of a cluster. When half of its time is over the node asks for the
 * next as itself, as kubelets do; the cluster approves that for nodes that may (selfnodeclient), or an administrator does.
 *
 *   young ── half of its time ──► asked ── signed ──► in use: young again
 *                                   │ ▲ refused, gone, or nobody decides: asked again later
 *                                   └─┘
 */
import { X509Certificate } from 'node:crypto';
import { delay } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { newKeyPair, privateKeyPem, type KeyPair } from '#lib/pki/x509.ts';
import { askToSign, outcomeOf, SIGNING_REQUESTS } from '#plane/cluster/signing-requests.ts';

/** A certificate is renewed when so much of its time is over. */
const RENEW_AT = 0.5;
const MAX_LOOK_MS = 60 * 60_000;
const MIN_LOOK_MS = 1000;
/** Of a request that waits to be signed. */
const WAIT = { firstMs: 1000, maxMs: 60_000 };
/** Then it is asked for anew: the cluster looks at each only once, and may have come to allow it. It tidies the old away. */
const GIVE_UP_MS = 60 * 60_000;
/** Looks after which people are told that they may have to approve it. */
const PATIENCE = 8;

/** PEM. */
export interface NodeProof {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface NodeCertificateOptions {
  /** As the node. */
  readonly client: Pick<Client, 'create' | 'get'>;
  readonly name: string;
  /** PEM of the one in use; undefined where the node proves otherwise who it is. */
  current(): string | undefined;
  /** Puts another one into use, for good. */
  use(proof: NodeProof): Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

interface Asked {
  readonly request: string;
  readonly keys: KeyPair;
  readonly atMs: number;
  readonly looks: number;
}

/** Until the signal aborts. */
export async function keepNodeCertificate(
  options: NodeCertificateOptions,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const { clock, log } = options;
  let asked: Asked | undefined;
  while (!signal.aborted) {
    try {
      asked = await step(options, asked, signal);
    } catch (err) {
      const until = untilOf(options.current());
      if (!signal.aborted) log.warn({ err, until }, 'Cannot renew the certificate of this node; trying again');
    }
    const waitMs = asked === undefined ? lookMs(options.current()) : backoffMs(asked.looks, WAIT);
    await delay(clock, waitMs, { signal });
  }
}

/** What is asked for and not decided yet. */
async function step(
  options: NodeCertificateOptions,
  before: Asked | undefined,
  signal: AbortSignal,
): Promise<Asked | undefined> {
  const { client, name, clock, log } = options;
  const current = options.current();
  // Somebody else may have renewed it meanwhile.
  if (current === undefined || clock.now() < dueAt(current)) return undefined;
  const asked = before ?? { ...(await ask(client, name, signal)), atMs: clock.now() };
  const request = await client.get(SIGNING_REQUESTS, { name: asked.request }, { signal }).catch((error: unknown) => {
    // The cluster tidies away what nobody approves.
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  });
  if (request === undefined) return undefined;
  const outcome = outcomeOf(request);
  if (outcome === 'waiting') {
    if (clock.now() - asked.atMs >= GIVE_UP_MS) return undefined;
    if (asked.looks === PATIENCE) log.warn({ until: untilOf(current) }, approveIt(asked.request));
    return { ...asked, looks: asked.looks + 1 };
  }
  if ('refused' in outcome) {
    log.warn(
      { until: untilOf(current) },
      `The cluster does not renew the certificate of this node: ${outcome.refused}`,
    );
    return undefined;
  }
  await options.use({ certPem: outcome.certPem, keyPem: privateKeyPem(asked.keys.privateKey) });
  return undefined;
}

async function ask(client: Pick<Client, 'create'>, name: string, signal: AbortSignal): Promise<Omit<Asked, 'atMs'>> {
  const keys = newKeyPair();
  const { metadata } = await askToSign(client, name, keys, { signal });
  return { request: metadata.name, keys, looks: 1 };
}

const approveIt = (request: string) =>
  `Nobody has approved the next certificate of this node yet: kubectl certificate approve ${request}`;

function dueAt(certPem: string): number {
  const { validFromDate, validToDate } = new X509Certificate(certPem);
  return validFromDate.getTime() + (validToDate.getTime() - validFromDate.getTime()) * RENEW_AT;
}

function untilOf(certPem: string | undefined): string | undefined {
  return certPem === undefined ? undefined : new X509Certificate(certPem).validToDate.toISOString();
}

/** Often enough for certificates that last only a moment. */
function lookMs(certPem: string | undefined): number {
  if (certPem === undefined) return MAX_LOOK_MS;
  const { validFromDate, validToDate } = new X509Certificate(certPem);
  return Math.max(MIN_LOOK_MS, Math.min(MAX_LOOK_MS, (validToDate.getTime() - validFromDate.getTime()) / 20));
}

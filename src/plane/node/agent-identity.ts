/**
 * The certificate of a node agent on a cluster. It is requested with a key that stays on this machine, and renewed at
 * half of its lifetime. If a renewal fails, the current one stays in use; the first request is repeated until it
 * succeeds.
 */
import { AGENT_CERTIFICATE } from '#api/agent-certificate.ts';
import { delay } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import { apiVersionOf } from '#kube/meta.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { BACKDATED_MS } from '#lib/pki/authority.ts';
import { newKeyPair, privateKeyPem } from '#lib/pki/x509.ts';
import { isRenewalDue, renewalCheckMs } from '#lib/pki/renewal.ts';

/** A certificate with its key and the authorities to trust, as PEM. */
export interface TlsIdentity {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

export interface AgentIdentity {
  /** Returns the current identity as a server. */
  now(): TlsIdentity;
  /** Returns the identity as a client of other agents, or undefined if there is none. */
  peer(): TlsIdentity | undefined;
  onRenewed(listener: (identity: TlsIdentity) => void): void;
  stop(): void;
}

interface AgentIdentityOptions {
  /** A client with the identity of the node. */
  readonly client: Pick<Client, 'create'>;
  readonly name: string;
  readonly hosts: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  readonly signal?: AbortSignal;
}

const RETRY = { firstMs: 500, maxMs: 15_000 };
/** Our own authorities issue the certificate. */
const RENEWAL = { backdatedMs: BACKDATED_MS, minMs: 1000, maxMs: 60_000 };

export async function obtainAgentIdentity(options: AgentIdentityOptions): Promise<AgentIdentity> {
  const { clock, log } = options;
  const stopping = new AbortController();
  options.signal?.addEventListener('abort', () => stopping.abort(options.signal?.reason), { once: true });
  const { signal } = stopping;
  let identity = await requestFirstIdentity(options, signal);
  const listeners = new Set<(renewed: TlsIdentity) => void>();
  void (async () => {
    while (!signal.aborted) {
      await delay(clock, renewalCheckMs(identity.cert, RENEWAL), { signal });
      if (signal.aborted || !isRenewalDue(identity.cert, clock.now(), RENEWAL)) continue;
      try {
        identity = await requestIdentity(options, signal);
        log.info({}, 'Renewed the certificate of this agent');
        for (const listener of listeners) listener(identity);
      } catch (err) {
        if (!signal.aborted) log.warn({ err }, 'Cannot renew the certificate of this agent; retrying');
      }
    }
  })();
  return {
    now: () => identity,
    peer: () => identity,
    onRenewed: (listener) => void listeners.add(listener),
    stop: () => stopping.abort(),
  };
}

async function requestFirstIdentity(options: AgentIdentityOptions, signal: AbortSignal): Promise<TlsIdentity> {
  const { clock, log } = options;
  for (let failures = 1; ; failures++) {
    try {
      return await requestIdentity(options, signal);
    } catch (err) {
      signal.throwIfAborted();
      const delayMs = backoffMs(failures, RETRY);
      log.warn({ err, delayMs }, 'Cannot get a certificate for this agent; retrying. Are the controllers running?');
      await delay(clock, delayMs, { signal });
      signal.throwIfAborted();
    }
  }
}

async function requestIdentity(
  { client, name, hosts }: AgentIdentityOptions,
  signal: AbortSignal,
): Promise<TlsIdentity> {
  const { publicKey, privateKey } = newKeyPair();
  const spec = { publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(), hosts: [...hosts] };
  const request = {
    apiVersion: apiVersionOf(AGENT_CERTIFICATE),
    kind: AGENT_CERTIFICATE.kind,
    metadata: { name },
    spec,
  };
  const { status } = await client.create(AGENT_CERTIFICATE, request, { signal });
  if (status === undefined) throw new Error('Cannot get a certificate for this agent: the response has none');
  return { cert: status.certificate, ca: status.authorities, key: privateKeyPem(privateKey) };
}

/**
 * The certificate of an agent on a cluster: asked for with a key that stays here, and again when half of its time is over.
 * While nobody answers, the one that there is stays in use; where there is none yet, the agent waits.
 */
import { X509Certificate } from 'node:crypto';
import { AGENT_CERTIFICATE } from '#api/agent-certificate.ts';
import { delay } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import { apiVersionOf } from '#kube/meta.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { BACKDATED_MS } from '#lib/pki/authority.ts';
import { newKeyPair, privateKeyPem } from '#lib/pki/x509.ts';
import { isDue } from '#plane/cluster/authority-keeper.ts';

/** PEM. */
export interface Identity {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

export interface AgentIdentity {
  /** As a server. */
  now(): Identity;
  /** As somebody who comes to other agents; undefined where it cannot. */
  peer(): Identity | undefined;
  onRenewed(listener: (identity: Identity) => void): void;
  stop(): void;
}

export interface AgentIdentityOptions {
  /** As the node. */
  readonly client: Pick<Client, 'create'>;
  readonly name: string;
  readonly hosts: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  readonly signal?: AbortSignal;
}

const RETRY = { firstMs: 500, maxMs: 15_000 };
const LOOK_MS = 60_000;
const MIN_LOOK_MS = 1000;

export async function askForIdentity(options: AgentIdentityOptions): Promise<AgentIdentity> {
  const { clock, log } = options;
  const stopping = new AbortController();
  options.signal?.addEventListener('abort', () => stopping.abort(options.signal?.reason), { once: true });
  const { signal } = stopping;
  let identity = await first(options, signal);
  const listeners = new Set<(renewed: Identity) => void>();
  void (async () => {
    while (!signal.aborted) {
      await delay(clock, lookMs(identity), { signal });
      if (signal.aborted || !isDue({ certPem: identity.cert }, clock.now())) continue;
      try {
        identity = await ask(options, signal);
        log.info({}, 'renewed the certificate of this agent');
        for (const listener of listeners) listener(identity);
      } catch (err) {
        if (!signal.aborted) log.warn({ err }, 'Cannot renew the certificate of this agent; trying again');
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

/** Often enough for certificates that last only a moment. */
function lookMs({ cert }: Identity): number {
  const { validTo, validFrom } = new X509Certificate(cert);
  return Math.max(MIN_LOOK_MS, Math.min(LOOK_MS, (Date.parse(validTo) - Date.parse(validFrom) - BACKDATED_MS) / 20));
}

async function first(options: AgentIdentityOptions, signal: AbortSignal): Promise<Identity> {
  const { clock, log } = options;
  for (let failures = 1; ; failures++) {
    try {
      return await ask(options, signal);
    } catch (err) {
      signal.throwIfAborted();
      const delayMs = backoffMs(failures, RETRY);
      log.warn({ err, delayMs }, 'Cannot get a certificate for this agent; are the controllers running? Trying again');
      await delay(clock, delayMs, { signal });
      signal.throwIfAborted();
    }
  }
}

async function ask({ client, name, hosts }: AgentIdentityOptions, signal: AbortSignal): Promise<Identity> {
  const { publicKey, privateKey } = newKeyPair();
  const spec = { publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(), hosts: [...hosts] };
  const wish = { apiVersion: apiVersionOf(AGENT_CERTIFICATE), kind: AGENT_CERTIFICATE.kind, metadata: { name }, spec };
  const { status } = await client.create(AGENT_CERTIFICATE, wish, { signal });
  if (status === undefined) throw new Error('Cannot read the certificate of this agent: the answer has none');
  return { cert: status.certificate, ca: status.authorities, key: privateKeyPem(privateKey) };
}

/**
 * The embedded engine of one machine: the core on a durable store, behind TLS, with the controllers of a cluster. Owns its
 * part of the data directory:
 *
 *   <data-dir>/store.db      the store
 *   <data-dir>/pki/          CA and server certificate
 *   <data-dir>/kubeconfig    the administrator's access
 *   <data-dir>/audit/        the audit log of changes and refusals
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { parseServiceNetworks } from '#engine/admission/service-addresses/service-networks.ts';
import { DEFAULT_AUDIT, type AuditOptions } from '#engine/audit/audit-options.ts';
import { startAudit } from '#engine/audit/start-audit.ts';
import { unauthenticatedRecord } from '#engine/audit/unauthenticated.ts';
import { createAuthenticator } from '#engine/auth/authenticate.ts';
import { ensurePki, type Pki } from '#engine/auth/certificates.ts';
import { issueOutwardIdentity } from '#engine/auth/front-proxy.ts';
import { MASTERS } from '#engine/auth/groups.ts';
import { ensureSigningKey } from '#engine/auth/service-accounts/signing-key.ts';
import { writeKubeconfig } from '#lib/files/kubeconfig-file.ts';
import { loadTokenFile, tokenLookup } from '#engine/auth/tokens.ts';
import { startControllers, type RunningControllers } from '#engine/controllers/start.ts';
import { createCore } from '#engine/core.ts';
import { DEFAULT_EVENT_TTL_MS, startEventExpiry } from '#engine/expiry/event-expiry.ts';
import type { HealthCheck } from '#engine/dispatch/health.ts';
import { HttpsListener } from '#engine/http/server.ts';
import type { ApiHandler } from '#engine/request/request.ts';
import type { LocalServices } from '#engine/remote/local-services.ts';
import { createStoreCopier } from '#engine/store/sqlite/store-copies.ts';
import { SqliteJournal } from '#engine/store/sqlite/sqlite-journal.ts';
import { LogStore } from '#engine/store/log-store.ts';
import type { Clock } from '#lib/clock.ts';
import { FairTurns } from '#lib/fair-turns.ts';
import type { Log } from '#lib/log.ts';
import { MetricRegistry } from '#lib/metrics/metric-registry.ts';
import { startProcessMetrics } from '#lib/metrics/process-metrics.ts';
import { renewWeekly } from '#lib/renewals.ts';

export interface EngineOptions {
  readonly dataDir: string;
  readonly host: string;
  readonly port: number;
  readonly tokenAuthFile?: string | undefined;
  /** Webhooks and aggregated APIs that run in this process. */
  readonly services?: LocalServices;
  /** Additional checks of /readyz. */
  readonly readyChecks?: readonly HealthCheck[];
  readonly audit?: AuditOptions;
  /** The subnets of Services: one of IPv4, one of IPv6, or both; the first is the default family. */
  readonly serviceSubnets?: readonly string[] | undefined;
  /** True if Services of type LoadBalancer get the addresses of the nodes. */
  readonly loadBalancer?: boolean | undefined;
  /** The time after which an Event that is not written again is removed. */
  readonly eventTtlMs?: number;
  readonly log: Log;
  readonly clock: Clock;
}

export interface Engine {
  readonly url: string;
  readonly kubeconfigPath: string;
  /** The API for clients in this process. */
  readonly handler: ApiHandler;
  /** Issues certificates for joining nodes. */
  readonly pki: Pki;
  /** The metrics of this process, which /metrics serves. */
  readonly metrics: MetricRegistry;
  stop(): Promise<void>;
}

/** Relative to the data directory. */
export const STORE_FILE = 'store.db';
const ADMIN = 'selfsame-admin';
const ADMIN_DAYS = 365;

export async function startEngine(options: EngineOptions): Promise<Engine> {
  const { dataDir, host, log, clock } = options;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const pki = await ensurePki({
    dir: join(dataDir, 'pki'),
    hosts: certificateHosts(host),
    now: () => clock.now(),
    log,
  });
  const tokens = options.tokenAuthFile === undefined ? [] : await loadTokenFile(options.tokenAuthFile);
  const journal = new SqliteJournal(join(dataDir, STORE_FILE));
  const store = await LogStore.open(journal);
  const metrics = new MetricRegistry();
  const audit = startAudit(dataDir, options.audit ?? DEFAULT_AUDIT, { clock, log, metrics });
  const endProcessMetrics = startProcessMetrics(metrics);
  const endExpiry = startEventExpiry({ store, clock, log, ttlMs: options.eventTtlMs ?? DEFAULT_EVENT_TTL_MS });
  let listener: HttpsListener | undefined;
  let controllers: RunningControllers | undefined;
  let endRenewals = async () => {};
  const turns = new FairTurns();
  const core = createCore({
    store,
    turns,
    clock,
    log,
    tokens: tokenLookup(tokens),
    services: options.services,
    readyChecks: options.readyChecks,
    serviceNetworks: options.serviceSubnets && parseServiceNetworks(options.serviceSubnets),
    audit: audit?.sink,
    metrics,
    backup: createStoreCopier(journal, join(dataDir, `${STORE_FILE}.copy`)),
    signingKey: await ensureSigningKey(join(dataDir, 'pki')),
    identity: issueOutwardIdentity(pki, { clock }),
    serverAddress: () => address(host, listener?.port ?? options.port),
  });
  /** Stops in reverse order of the start; skips what was not started. */
  const stop = async () => {
    await endRenewals();
    await controllers?.stop();
    await listener?.stop();
    core.stop();
    endExpiry();
    await store.close();
    await audit?.close();
    endProcessMetrics();
  };
  try {
    listener = await HttpsListener.start({
      host,
      port: options.port,
      cert: pki.server.certPem,
      key: pki.server.keyPem,
      ca: pki.caPem,
      handler: core.handler,
      turns,
      authenticate: createAuthenticator({ tokens: core.tokens }),
      onUnauthenticated: (turned) => audit?.sink(unauthenticatedRecord(turned, clock.now())),
      log,
    });
    controllers = await startControllers({ core, caPem: pki.caPem, loadBalancer: options.loadBalancer, clock, log });
    const url = `https://${address(host, listener.port)}`;
    const kubeconfigPath = await writeAdminKubeconfig(pki, dataDir, url);
    endRenewals = renewWeekly(() => renew(pki, listener, { dataDir, url }), { clock, log });
    core.markStarted();
    return { url, kubeconfigPath, handler: core.handler, pki, metrics, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Renews certificates that would expire while the server runs. */
async function renew(
  pki: Pki,
  listener: HttpsListener | undefined,
  { dataDir, url }: { readonly dataDir: string; readonly url: string },
): Promise<void> {
  const { certPem: cert, keyPem: key } = await pki.renewServer();
  listener?.renew({ cert, key, ca: pki.caPem });
  await writeAdminKubeconfig(pki, dataDir, url);
}

async function writeAdminKubeconfig(pki: Pki, dataDir: string, server: string): Promise<string> {
  const file = join(dataDir, 'kubeconfig');
  const { certPem, keyPem } = pki.issueClientCertificate({ user: ADMIN, groups: [MASTERS], days: ADMIN_DAYS });
  await writeKubeconfig({ file, server, caPem: pki.caPem, user: ADMIN, certPem, keyPem });
  return file;
}

/** Returns the names by which local clients reach the server, and the listening address. */
function certificateHosts(host: string): string[] {
  const known = ['localhost', '127.0.0.1', '::1', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'];
  return host === '0.0.0.0' || host === '::' || known.includes(host) ? known : [...known, host];
}

function address(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return reachable.includes(':') ? `[${reachable}]:${port}` : `${reachable}:${port}`;
}

/**
 * `selfsame controllers`: one controllers process on an existing cluster. Every process serves the webhook and the
 * aggregated API; the operator and the controllers run only in the leader.
 *
 *   authorities ─► HTTPS services ─► member, endpoints of all members ─┬─ follows
 *                                                                      └─ leads: operator ─► our kinds ─► controllers
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { HOST_READER } from '#api/host-api.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { delay } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import { createHttpTransport } from '#client/http.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { createClient } from '#client/rest-client.ts';
import { invariant } from '#lib/invariant.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { MetricRegistry } from '#lib/metrics/metric-registry.ts';
import { startProcessMetrics } from '#lib/metrics/process-metrics.ts';
import { INFORMERS_ACCOUNT } from '#operator/bootstrap.ts';
import { SUBRESOURCES_SERVICE } from '#operator/objects/api-services.ts';
import { CLUSTER_SERVICES } from '#operator/objects/cluster.ts';
import { WEBHOOK_SERVICE } from '#operator/objects/webhooks.ts';
import { waitUntilServed } from '#operator/operator-controller.ts';
import { createAccountClients } from '#plane/cluster/account-clients.ts';
import { MIN_RATIO, type Lifetimes } from '#plane/cluster/authorities.ts';
import { AuthorityKeeper } from '#plane/cluster/authority-keeper.ts';
import { keepEndpoints, removeEndpoints } from '#plane/cluster/endpoints.ts';
import { readFrontProxy } from '#plane/cluster/front-proxy.ts';
import { startHttpsServices } from '#plane/cluster/https-services.ts';
import { keepMembership, renewMembership, type Member } from '#plane/cluster/members.ts';
import { createConnectionsAs, createAgentSigner } from '#plane/cluster/component-identities.ts';
import { keepOwnToken } from '#plane/cluster/own-token.ts';
import { startPlaneControllers } from '#plane/components/plane-controllers.ts';
import { createWebhook, createWebhookCaches, type WebhookCaches } from '#plane/components/webhook.ts';
import type { RunningController } from '#runtime/controller.ts';
import { runWhileLeading } from '#runtime/leader-election.ts';
import { SharedInformers } from '#runtime/shared-informers.ts';
import { createSubresourcesApi } from '#subresources/subresources-api.ts';

interface ControllersProgramOptions {
  /** Access of the account that may request tokens of our accounts. */
  readonly access: ClusterAccess;
  /** The address to listen on, and the IP address under which the API server reaches it. */
  readonly host: string;
  readonly port: number;
  readonly advertiseAddress: string;
  readonly lifetimes: Lifetimes;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Called when API servers can find the services, and each time when this process becomes the leader. */
  onReady?(): void;
  onLeading?(): void;
}

const LEASE = { namespace: SYSTEM_NAMESPACE, name: 'selfsame-controllers' };
const FRONT_PROXY_MS = 60_000;
/** Time for API servers to notice that this process leaves; longer than the interval of keepEndpoints. */
const LEAVE_MS = 2500;

/** Resolves when everything has ended after the signal aborted. Rejects if it cannot start. */
export async function runControllersProgram(options: ControllersProgramOptions): Promise<void> {
  const { access, clock, log, signal, lifetimes } = options;
  invariant(lifetimes.authorityMs >= MIN_RATIO * lifetimes.certificateMs, 'authorities outlive what they sign');
  const id = `${hostname()
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 20)}-${randomBytes(4).toString('hex')}`.replace(/^-/, '');
  const transport = createHttpTransport(access, { userAgent: 'selfsame-controllers', clock });
  const client = createClient(transport);
  const accounts = createAccountClients({ access, client, clock });
  const serving = new AbortController();
  const cleanups: (() => Promise<unknown> | void)[] = [() => accounts.close(), () => transport.close()];
  try {
    const authority = await AuthorityKeeper.open({ client, lifetimes, clock, log });
    const running = [authority.run({ signal: serving.signal }), keepOwnToken({ access, client, clock, log }, serving)];
    cleanups.unshift(() => Promise.all(running));
    const hosts = createConnectionsAs(authority, HOST_READER, { clock });
    const metrics = new MetricRegistry();
    cleanups.push(startProcessMetrics(metrics));
    const parts: ProgramParts = { ...options, id, client, accounts, authority, hosts, metrics };
    const services = await startServices(parts, serving.signal);
    cleanups.unshift(() => services.stop());
    const member: Member = { id, address: options.advertiseAddress, port: services.port };
    const leaving = new AbortController();
    await renewMembership({ client, member, clock, log }, { signal });
    // Ready only after API servers can find this process.
    let isReady = false;
    const onWritten = () => {
      if (!isReady) options.onReady?.();
      isReady = true;
    };
    const membership = [
      keepMembership({ client, member, clock, log }, leaving),
      keepEndpoints(endpointsOptions(parts), { signal: leaving.signal, onWritten }),
    ];
    await runWhileLeading({
      ...{ client, clock, log, signal },
      lease: LEASE,
      identity: id,
      lead: (leading) => lead(parts, leading),
    });
    leaving.abort();
    await Promise.all(membership);
    await removeEndpoints(endpointsOptions(parts)).catch((err: unknown) => {
      log.warn({ err }, 'Cannot remove the endpoints of this process');
    });
    await delay(clock, LEAVE_MS, new AbortController());
  } finally {
    serving.abort();
    for (const end of cleanups) await end();
  }
}

interface ProgramParts extends ControllersProgramOptions {
  readonly id: string;
  readonly client: Client;
  readonly accounts: ReturnType<typeof createAccountClients>;
  readonly authority: AuthorityKeeper;
  readonly hosts: ReturnType<typeof createConnectionsAs>;
  readonly metrics: MetricRegistry;
}

const endpointsOptions = ({ client, id, clock, log }: ProgramParts) => ({
  client,
  id,
  services: CLUSTER_SERVICES,
  clock,
  log,
});

async function startServices(parts: ProgramParts, signal: AbortSignal) {
  const { accounts, authority, client, clock, log, host, port, advertiseAddress, metrics } = parts;
  const hosts = [...CLUSTER_SERVICES.map((name) => `${name}.${SYSTEM_NAMESPACE}.svc`), advertiseAddress, 'localhost'];
  const identity = authority.hold({ subject: { commonName: 'selfsame-services' }, purpose: { kind: 'server', hosts } });
  const informers = new SharedInformers({ reader: accounts.of(INFORMERS_ACCOUNT), clock, log, signal });
  const caches: { now?: WebhookCaches } = {};
  void fillWebhookCaches(informers, caches, signal).catch((err: unknown) => {
    if (!signal.aborted) log.error({ err }, 'Cannot fill the caches of the webhook');
  });
  const subresources = accounts.of(SUBRESOURCES_SERVICE);
  const nodes = createConnectionsAs(authority, SUBRESOURCES_SERVICE, { clock })(subresources);
  let frontProxy = await readFrontProxy(client);
  const services = await startHttpsServices({
    ...{ host, port, frontProxy, log },
    identity: identity.now(),
    webhook: createWebhook({ client: accounts.of(WEBHOOK_SERVICE), caches, clock }),
    api: createSubresourcesApi({ client: subresources, nodes, agentSigner: createAgentSigner(authority), clock, log }),
    checkReady: () => (caches.now === undefined ? 'our kinds are not served yet' : undefined),
    metricsText: () => metrics.text(),
  });
  const renew = () => services.renew(identity.now(), frontProxy);
  authority.onChange(renew);
  const watchingFrontProxy = (async () => {
    for (;;) {
      await delay(clock, FRONT_PROXY_MS, { signal });
      if (signal.aborted) return;
      try {
        frontProxy = await readFrontProxy(client);
        renew();
      } catch (err) {
        if (!signal.aborted) log.warn({ err }, 'Cannot read the front proxy of the API server; using the previous one');
      }
    }
  })();
  return {
    port: services.port,
    async stop() {
      nodes.close();
      await services.stop();
      await Promise.all([informers.stopped(), watchingFrontProxy]);
    },
  };
}

/** Fills the caches once our kinds are served: watching them earlier only yields errors. */
async function fillWebhookCaches(
  informers: SharedInformers,
  caches: { now?: WebhookCaches },
  signal: AbortSignal,
): Promise<void> {
  const informer: SharedInformers['of'] = (type) => informers.of(type);
  if (!(await waitUntilServed({ informer, signal }))) return;
  const created = createWebhookCaches(informer);
  await informers.waitForSync();
  caches.now = created;
}

async function lead(parts: ProgramParts, signal: AbortSignal): Promise<void> {
  const { accounts, authority, metrics, clock, log } = parts;
  parts.onLeading?.();
  const informers = new SharedInformers({ reader: accounts.of(INFORMERS_ACCOUNT), clock, log, signal });
  const controllers: RunningController[] = [];
  try {
    await startPlaneControllers({
      clientOf: (account) => accounts.of(account),
      hosts: parts.hosts,
      trust: authority,
      onStarted: (controller) => controllers.push(controller),
      ...{ informers, metrics, clock, log, signal },
    });
    if (!signal.aborted) await once(signal, 'abort');
  } finally {
    await Promise.all([...controllers.map(({ stopped }) => stopped), informers.stopped()]);
  }
}

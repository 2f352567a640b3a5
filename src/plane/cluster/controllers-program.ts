/**
 * `selfsame controllers`: one process of ours on any cluster. Its services answer from the start, whoever leads; operator and
 * controllers run in the one that leads.
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
import { INFORMERS_ACCOUNT } from '#operator/bootstrap.ts';
import { SUBRESOURCES_SERVICE } from '#operator/objects/api-services.ts';
import { CLUSTER_SERVICES } from '#operator/objects/cluster.ts';
import { WEBHOOK_SERVICE } from '#operator/objects/webhooks.ts';
import { served } from '#operator/operator-controller.ts';
import { createAccountClients } from '#plane/cluster/account-clients.ts';
import { MIN_RATIO, type Lifetimes } from '#plane/cluster/authorities.ts';
import { AuthorityKeeper } from '#plane/cluster/authority-keeper.ts';
import { keepEndpoints, removeEndpoints } from '#plane/cluster/endpoints.ts';
import { readFrontProxy } from '#plane/cluster/front-proxy.ts';
import { startHttpsServices } from '#plane/cluster/https-services.ts';
import { keepMembership, renewMembership, type Member } from '#plane/cluster/members.ts';
import { nodesThrough, signerOfAgents } from '#plane/cluster/our-identities.ts';
import { keepOwnToken } from '#plane/cluster/own-token.ts';
import { startPlaneControllers } from '#plane/plane-controllers.ts';
import { createWebhook, knownTo, type Known } from '#plane/webhook.ts';
import type { RunningController } from '#runtime/controller.ts';
import { runWhileLeading } from '#runtime/leader-election.ts';
import { Metrics } from '#runtime/metrics.ts';
import { SharedInformers } from '#runtime/shared-informers.ts';
import { createSubresourcesApi } from '#subresources/subresources-api.ts';

export interface ControllersProgramOptions {
  /** As whoever may ask for the tokens of our accounts. */
  readonly access: ClusterAccess;
  /** Where to listen, and the IP address under which the API server reaches that. */
  readonly host: string;
  readonly port: number;
  readonly advertiseAddress: string;
  readonly lifetimes: Lifetimes;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Is told when API servers find the services, and each time that this process begins to lead. */
  onReady?(): void;
  onLeading?(): void;
}

const LEASE = { namespace: SYSTEM_NAMESPACE, name: 'selfsame-controllers' };
const FRONT_PROXY_MS = 60_000;
/** For API servers to learn that this one is not there any more; longer than another of ours looks away. */
const LEAVE_MS = 2500;

/** Resolves when the signal was aborted and everything has ended; rejects where it cannot start. */
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
  const ends: (() => Promise<unknown> | void)[] = [() => accounts.close(), () => transport.close()];
  try {
    const authority = await AuthorityKeeper.open({ client, lifetimes, clock, log });
    const running = [authority.run({ signal: serving.signal }), keepOwnToken({ access, client, clock, log }, serving)];
    ends.unshift(() => Promise.all(running));
    const hosts = nodesThrough(authority, HOST_READER, { clock });
    const scene: Scene = { ...options, id, client, accounts, authority, hosts, metrics: new Metrics() };
    const services = await startServices(scene, serving.signal);
    ends.unshift(() => services.stop());
    const member: Member = { id, address: options.advertiseAddress, port: services.port };
    const leaving = new AbortController();
    await renewMembership({ client, member, clock, log }, { signal });
    // Whoever is told that we are ready finds that API servers know of us.
    let isTold = false;
    const whenTold = () => {
      if (!isTold) options.onReady?.();
      isTold = true;
    };
    const membership = [
      keepMembership({ client, member, clock, log }, leaving),
      keepEndpoints(endpointsOptions(scene), { signal: leaving.signal, whenTold }),
    ];
    await runWhileLeading({
      ...{ client, clock, log, signal },
      lease: LEASE,
      identity: id,
      lead: (s) => lead(scene, s),
    });
    leaving.abort();
    await Promise.all(membership);
    await removeEndpoints(endpointsOptions(scene)).catch((err: unknown) => {
      log.warn({ err }, 'Cannot say that our services are gone from here');
    });
    await delay(clock, LEAVE_MS, new AbortController());
  } finally {
    serving.abort();
    for (const end of ends) await end();
  }
}

interface Scene extends ControllersProgramOptions {
  readonly id: string;
  readonly client: Client;
  readonly accounts: ReturnType<typeof createAccountClients>;
  readonly authority: AuthorityKeeper;
  readonly hosts: ReturnType<typeof nodesThrough>;
  readonly metrics: Metrics;
}

const endpointsOptions = ({ client, id, clock, log }: Scene) => ({
  client,
  id,
  services: CLUSTER_SERVICES,
  clock,
  log,
});

async function startServices(scene: Scene, signal: AbortSignal) {
  const { accounts, authority, client, clock, log, host, port, advertiseAddress, metrics } = scene;
  const hosts = [...CLUSTER_SERVICES.map((name) => `${name}.${SYSTEM_NAMESPACE}.svc`), advertiseAddress, 'localhost'];
  const identity = authority.hold({ subject: { commonName: 'selfsame-services' }, purpose: { kind: 'server', hosts } });
  const informers = new SharedInformers({ reader: accounts.of(INFORMERS_ACCOUNT), clock, log, signal });
  const known: { now?: Known } = {};
  void whenKnown(informers, known, signal).catch((err: unknown) => {
    if (!signal.aborted) log.error({ err }, 'Cannot watch what the webhook looks up');
  });
  const subresources = accounts.of(SUBRESOURCES_SERVICE);
  const nodes = nodesThrough(authority, SUBRESOURCES_SERVICE, { clock })(subresources);
  let frontProxy = await readFrontProxy(client);
  const services = await startHttpsServices({
    ...{ host, port, frontProxy, log },
    identity: identity.now(),
    webhook: createWebhook({ client: accounts.of(WEBHOOK_SERVICE), known, clock }),
    api: createSubresourcesApi({ client: subresources, nodes, agents: signerOfAgents(authority), clock, log }),
    notReady: () => (known.now === undefined ? 'our kinds are not served yet' : undefined),
    metricsText: () => metrics.text(),
  });
  const renew = () => services.renew(identity.now(), frontProxy);
  authority.onChange(renew);
  const looking = (async () => {
    for (;;) {
      await delay(clock, FRONT_PROXY_MS, { signal });
      if (signal.aborted) return;
      try {
        frontProxy = await readFrontProxy(client);
        renew();
      } catch (err) {
        if (!signal.aborted) log.warn({ err }, 'Cannot read whom the aggregated API may believe; as before for now');
      }
    }
  })();
  return {
    port: services.port,
    async stop() {
      nodes.close();
      await services.stop();
      await Promise.all([informers.stopped(), looking]);
    },
  };
}

/** Our kinds may come later: who watches them earlier only gets errors. */
async function whenKnown(informers: SharedInformers, known: { now?: Known }, signal: AbortSignal): Promise<void> {
  const informer: SharedInformers['of'] = (type) => informers.of(type);
  if (!(await served({ informer, signal }))) return;
  const caches = knownTo(informer);
  await informers.synced();
  known.now = caches;
}

async function lead(scene: Scene, signal: AbortSignal): Promise<void> {
  const { accounts, authority, metrics, clock, log } = scene;
  scene.onLeading?.();
  const informers = new SharedInformers({ reader: accounts.of(INFORMERS_ACCOUNT), clock, log, signal });
  const controllers: RunningController[] = [];
  try {
    await startPlaneControllers({
      clientOf: (account) => accounts.of(account),
      hosts: scene.hosts,
      trust: authority,
      started: (controller) => controllers.push(controller),
      ...{ informers, metrics, clock, log, signal },
    });
    if (!signal.aborted) await once(signal, 'abort');
  } finally {
    await Promise.all([...controllers.map(({ stopped }) => stopped), informers.stopped()]);
  }
}

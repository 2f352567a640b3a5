/**
 * Starts our components beside an engine in the same process: webhook, subresources, operator and controllers, each an
 * ordinary client with its own account. On an existing cluster the same components run behind HTTPS (cluster/).
 *
 *   bootstrap (as an administrator would) ─► services ─► operator: admission ─► our kinds are served
 *     ─► GuestNetwork, if one is wanted and absent ─► controllers
 */
import { KUBEVIRTS, type KubeVirt } from '#api/kubevirt/kind.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import type { Client } from '#client/client.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import type { Informer } from '#client/informer.ts';
import { createClient } from '#client/rest-client.ts';
import { AUTHENTICATED, MASTERS } from '#engine/auth/groups.ts';
import { serviceAccountUser } from '#engine/auth/service-accounts/user.ts';
import type { ApiHandler, UserInfo } from '#engine/request/request.ts';
import type { LocalServices } from '#engine/remote/local-services.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { MetricRegistry } from '#lib/metrics/metric-registry.ts';
import { waitForAdmission } from '#operator/admission-controller.ts';
import { applyBootstrap, INFORMERS_ACCOUNT } from '#operator/bootstrap.ts';
import { SUBRESOURCES_SERVICE } from '#operator/objects/api-services.ts';
import { WEBHOOK_SERVICE } from '#operator/objects/webhooks.ts';
import { ensureGuestNetwork, type GuestNetworkOptions } from '#plane/embedded/guest-network.ts';
import { startPlaneControllers } from '#plane/components/plane-controllers.ts';
import { createWebhook, createWebhookCaches, type WebhookCaches } from '#plane/components/webhook.ts';
import type { RunningController } from '#runtime/controller.ts';
import { SharedInformers } from '#runtime/shared-informers.ts';
import type { NodeConnections } from '#subresources/node-connections.ts';
import { createSubresourcesApi } from '#subresources/subresources-api.ts';

interface PlaneComponentsOptions {
  readonly handler: ApiHandler;
  readonly services: LocalServices;
  /** Creates the connections of the subresources API to node agents, with a client of its account. */
  nodes(client: Client): NodeConnections;
  /** Creates the connections of the device map to node agents, with a client of its account. */
  hosts(client: Client): Pick<NodeConnections, 'post'>;
  /** The metrics of this process, which the engine serves. */
  readonly metrics: MetricRegistry;
  /** The subnets of the GuestNetwork `default`, which is created if it is absent; none is created without them. */
  readonly guestNetwork?: GuestNetworkOptions | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export interface PlaneComponents {
  readonly controllers: readonly RunningController[];
  /** Resolves to true when objects of our kinds cannot be stored without admission, to false if stopped before. */
  readonly installed: Promise<boolean>;
  stop(): Promise<void>;
}

const DEPLOY_WAIT_MS = 20_000;

/** A user with all rights; used once to create what the operator needs, and the default network. */
const ADMINISTRATOR: UserInfo = { name: 'selfsame-installer', groups: [MASTERS, AUTHENTICATED] };

/**
 * Resolves when our kinds are served and all caches are filled. Waits only a limited time for the rest of the
 * installation.
 */
export async function startPlaneComponents(options: PlaneComponentsOptions): Promise<PlaneComponents> {
  const { services, hosts, metrics, clock, log } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const informers = new SharedInformers({ reader: accountClient(options, INFORMERS_ACCOUNT), clock, log, signal });
  const controllers: RunningController[] = [];
  const cleanups: (() => void)[] = [];
  const stop = async () => {
    stopping.abort();
    for (const end of cleanups) end();
    await Promise.all([...controllers.map(({ stopped }) => stopped), informers.stopped()]);
  };
  try {
    await applyBootstrap(clientOf(options, ADMINISTRATOR));
    const caches: { now?: WebhookCaches } = {};
    const webhook = createWebhook({ client: accountClient(options, WEBHOOK_SERVICE), caches, clock });
    cleanups.push(services.register(SYSTEM_NAMESPACE, WEBHOOK_SERVICE, webhook));
    cleanups.push(services.register(SYSTEM_NAMESPACE, SUBRESOURCES_SERVICE, { api: createSubresources(options) }));
    await startPlaneControllers(
      {
        clientOf: (account) => accountClient(options, account),
        onStarted: (controller) => controllers.push(controller),
        ...{ informers, hosts, metrics, clock, log, signal },
      },
      {
        whenServed: () => (caches.now = createWebhookCaches((type) => informers.of(type))),
        beforeControllers: async () => await createGuestNetwork(options),
      },
    );
    const informer: SharedInformers['of'] = (type) => informers.of(type);
    const installed = waitForAdmission({ informer, policies: 'served' }, { signal });
    await waitForDeployment(informers.of(KUBEVIRTS), installed, options, signal);
    return { controllers, installed, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function createGuestNetwork(options: PlaneComponentsOptions): Promise<void> {
  const { guestNetwork, log } = options;
  if (guestNetwork !== undefined) await ensureGuestNetwork(clientOf(options, ADMINISTRATOR), guestNetwork, { log });
}

/** Waits until everything is installed; the KubeVirt object reports what cannot be installed. */
async function waitForDeployment(
  settings: Informer<KubeVirt>,
  installed: Promise<boolean>,
  { clock, log }: PlaneComponentsOptions,
  signal: AbortSignal,
): Promise<void> {
  const deadline = new AbortController();
  const cancel = clock.after(DEPLOY_WAIT_MS, () => deadline.abort());
  const tooLate = new Promise<boolean>((resolve) => deadline.signal.addEventListener('abort', () => resolve(false)));
  const isDeployed = () => settings.list().some(({ status }) => status?.phase === 'Deployed');
  const isInTime = await settings.waitUntil(isDeployed, { signal: AbortSignal.any([signal, deadline.signal]) });
  const isComplete = isInTime && (await Promise.race([installed, tooLate]));
  cancel();
  if (!isComplete && !signal.aborted) log.warn({}, 'Not everything is installed yet; see kubectl describe kubevirt -A');
}

function createSubresources(options: PlaneComponentsOptions): ApiHandler {
  const { clock, log } = options;
  const client = accountClient(options, SUBRESOURCES_SERVICE);
  return createSubresourcesApi({ client, nodes: options.nodes(client), clock, log });
}

function accountClient(options: PlaneComponentsOptions, account: string): Client {
  return clientOf(options, serviceAccountUser(SYSTEM_NAMESPACE, { name: account, uid: '' }), account);
}

/** `userAgent`: the field manager, so that each component owns the fields that it writes. */
function clientOf({ handler }: PlaneComponentsOptions, user: UserInfo, userAgent = 'selfsame'): Client {
  return createClient(createInProcessTransport({ handler, user, userAgent }));
}

/**
 * Our own parts beside an engine in the same process: webhook, subresources, operator and controllers, each an ordinary
 * client under its own account. On a cluster the very same parts run behind HTTPS (cluster/).
 *
 *   bootstrap (as an administrator would) ─► services ─► operator: admission ─► our kinds are served ─► controllers
 */
import { KUBEVIRTS, type KubeVirt } from '#api/kubevirt/kind.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import type { Client } from '#client/client.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import type { Informer } from '#client/informer.ts';
import { createClient } from '#client/rest-client.ts';
import { AUTHENTICATED, MASTERS } from '#engine/auth/groups.ts';
import { serviceAccountUser } from '#engine/auth/service-accounts/user.ts';
import type { ApiHandler, UserInfo } from '#engine/request.ts';
import type { LocalServices } from '#engine/services.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { admissionInPlace } from '#operator/admission-controller.ts';
import { applyBootstrap, INFORMERS_ACCOUNT } from '#operator/bootstrap.ts';
import { SUBRESOURCES_SERVICE } from '#operator/objects/api-services.ts';
import { WEBHOOK_SERVICE } from '#operator/objects/webhooks.ts';
import { startPlaneControllers } from '#plane/plane-controllers.ts';
import { createWebhook, knownTo, type Known } from '#plane/webhook.ts';
import type { RunningController } from '#runtime/controller.ts';
import { Metrics } from '#runtime/metrics.ts';
import { SharedInformers } from '#runtime/shared-informers.ts';
import type { NodeConnections } from '#subresources/node-connections.ts';
import { createSubresourcesApi } from '#subresources/subresources-api.ts';

export interface OwnPartsOptions {
  readonly handler: ApiHandler;
  readonly services: LocalServices;
  /** How the subresources reach the agents of nodes; gets a client of their account. */
  nodes(client: Client): NodeConnections;
  /** How the device map asks them for the devices of guests; gets a client of its account. */
  hosts(client: Client): Pick<NodeConnections, 'post'>;
  readonly clock: Clock;
  readonly log: Log;
}

export interface OwnParts {
  readonly controllers: readonly RunningController[];
  /** Resolves to true when nothing of our kinds can be stored without admission, to false when stopped before. */
  readonly installed: Promise<boolean>;
  stop(): Promise<void>;
}

const DEPLOY_WAIT_MS = 20_000;

/** Who may do everything; used once, for what the operator stands on. */
const ADMINISTRATOR: UserInfo = { name: 'selfsame-installer', groups: [MASTERS, AUTHENTICATED] };

/** Resolves when our kinds are served and everything watches them. Waits for the rest of the installation for a while only. */
export async function startOwnParts(options: OwnPartsOptions): Promise<OwnParts> {
  const { services, hosts, clock, log } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const informers = new SharedInformers({ reader: accountClient(options, INFORMERS_ACCOUNT), clock, log, signal });
  const metrics = new Metrics();
  const controllers: RunningController[] = [];
  const leave: (() => void)[] = [];
  const stop = async () => {
    stopping.abort();
    for (const end of leave) end();
    await Promise.all([...controllers.map(({ stopped }) => stopped), informers.stopped()]);
  };
  try {
    await applyBootstrap(clientOf(options, ADMINISTRATOR));
    leave.push(services.addMetrics(() => metrics.text()));
    const known: { now?: Known } = {};
    const webhook = createWebhook({ client: accountClient(options, WEBHOOK_SERVICE), known, clock });
    leave.push(services.register(SYSTEM_NAMESPACE, WEBHOOK_SERVICE, webhook));
    leave.push(services.register(SYSTEM_NAMESPACE, SUBRESOURCES_SERVICE, { api: subresources(options) }));
    await startPlaneControllers(
      {
        clientOf: (account) => accountClient(options, account),
        started: (controller) => controllers.push(controller),
        ...{ informers, hosts, metrics, clock, log, signal },
      },
      () => (known.now = knownTo((type) => informers.of(type))),
    );
    const informer: SharedInformers['of'] = (type) => informers.of(type);
    const installed = admissionInPlace({ informer, policies: 'served' }, { signal });
    await deployed(informers.of(KUBEVIRTS), installed, options, signal);
    return { controllers, installed, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Waits until everything is in place; the KubeVirt object reports what cannot be put in place. */
async function deployed(
  settings: Informer<KubeVirt>,
  installed: Promise<boolean>,
  { clock, log }: OwnPartsOptions,
  signal: AbortSignal,
): Promise<void> {
  const late = new AbortController();
  const cancel = clock.after(DEPLOY_WAIT_MS, () => late.abort());
  const tooLate = new Promise<boolean>((resolve) => late.signal.addEventListener('abort', () => resolve(false)));
  const isDeployed = () => settings.list().some(({ status }) => status?.phase === 'Deployed');
  const isInTime = await settings.until(isDeployed, { signal: AbortSignal.any([signal, late.signal]) });
  const done = isInTime && (await Promise.race([installed, tooLate]));
  cancel();
  if (!done && !signal.aborted) log.warn({}, 'Not everything is installed yet; kubectl describe kubevirt -A tells why');
}

function subresources(options: OwnPartsOptions): ApiHandler {
  const { clock, log } = options;
  const client = accountClient(options, SUBRESOURCES_SERVICE);
  return createSubresourcesApi({ client, nodes: options.nodes(client), clock, log });
}

function accountClient(options: OwnPartsOptions, account: string): Client {
  return clientOf(options, serviceAccountUser(SYSTEM_NAMESPACE, { name: account, uid: '' }), account);
}

/** Each part owns the fields that it writes under a name of its own. */
function clientOf({ handler }: OwnPartsOptions, user: UserInfo, userAgent = 'selfsame'): Client {
  return createClient(createInProcessTransport({ handler, user, userAgent }));
}

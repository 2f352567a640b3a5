/**
 * Our own parts beside an engine in the same process: webhook, subresources, operator and controllers, each an ordinary
 * client under its own account. On a cluster the very same parts run behind HTTPS.
 *
 *   bootstrap (as an administrator would) ─► services ─► operator ─► our kinds are served ─► controllers
 */
import { reviewAdmission } from '#admission/review-admission.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { KUBEVIRTS, type KubeVirt } from '#api/kubevirt/kind.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import type { Client } from '#client/client.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import { createClient } from '#client/rest-client.ts';
import { deviceMapController } from '#controllers/device-map/device-map.ts';
import type { PlaneController } from '#controllers/plane-controller.ts';
import { storageController } from '#controllers/storage/storage.ts';
import { vmController } from '#controllers/vm/vm-controller.ts';
import { vmiController } from '#controllers/vmi/vmi-controller.ts';
import { AUTHENTICATED, MASTERS } from '#engine/auth/groups.ts';
import { serviceAccountUser } from '#engine/auth/service-accounts/user.ts';
import type { ApiHandler, UserInfo } from '#engine/request.ts';
import type { LocalServices } from '#engine/services.ts';
import type { Clock } from '#lib/clock.ts';
import { newUid } from '#lib/ids.ts';
import type { Log } from '#lib/log.ts';
import { applyBootstrap, INFORMERS_ACCOUNT } from '#operator/bootstrap.ts';
import { SUBRESOURCES_SERVICE } from '#operator/objects/api-services.ts';
import { WEBHOOK_SERVICE } from '#operator/objects/webhooks.ts';
import { operatorController, served } from '#operator/operator-controller.ts';
import type { RunningController } from '#runtime/controller.ts';
import { EventRecorder } from '#runtime/events.ts';
import { SharedInformers } from '#runtime/shared-informers.ts';
import type { NodeConnections } from '#subresources/node-connections.ts';
import { createSubresourcesApi } from '#subresources/subresources-api.ts';

export interface OwnPartsOptions {
  readonly handler: ApiHandler;
  readonly services: LocalServices;
  /** How the subresources reach the agents of nodes; gets a client of their account. */
  nodes(client: Client): NodeConnections;
  readonly clock: Clock;
  readonly log: Log;
}

export interface OwnParts {
  readonly controllers: readonly RunningController[];
  stop(): Promise<void>;
}

/** Every controller of ours, in one list. */
const CONTROLLERS: readonly PlaneController[] = [vmController, vmiController, deviceMapController, storageController];

const DEPLOY_WAIT_MS = 20_000;

/** Who may do everything; used once, for what the operator stands on. */
const ADMINISTRATOR: UserInfo = { name: 'selfsame-installer', groups: [MASTERS, AUTHENTICATED] };

/** Resolves when our kinds are served and everything watches them. */
export async function startOwnParts(options: OwnPartsOptions): Promise<OwnParts> {
  const { services, clock, log } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const informers = new SharedInformers({ reader: accountClient(options, INFORMERS_ACCOUNT), clock, log, signal });
  const informer: SharedInformers['of'] = (type) => informers.of(type);
  const start = ({ account, eventSource, start: run }: PlaneController): readonly RunningController[] => {
    const client = accountClient(options, account);
    const events = new EventRecorder({ writer: client, clock, log, component: eventSource, signal });
    return run({ client, informer, clock, log, events, signal });
  };

  const controllers: RunningController[] = [];
  const leave: (() => void)[] = [];
  const stop = async () => {
    stopping.abort();
    for (const end of leave) end();
    await Promise.all([...controllers.map(({ stopped }) => stopped), informers.stopped()]);
  };
  try {
    await applyBootstrap(clientOf(options, ADMINISTRATOR));
    // The webhook answers before its configuration is there, and goes on without the settings until they are.
    const settings: { now?: Informer<KubeVirt> } = {};
    leave.push(services.register(SYSTEM_NAMESPACE, WEBHOOK_SERVICE, webhook(settings)));
    leave.push(services.register(SYSTEM_NAMESPACE, SUBRESOURCES_SERVICE, { api: subresources(options) }));
    controllers.push(...start(operatorController));
    await served({ informer, signal });
    settings.now = informer(KUBEVIRTS);
    for (const controller of CONTROLLERS) controllers.push(...start(controller));
    await informers.synced();
    await deployed(settings.now, options, signal);
    return { controllers, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Whoever is told that we are ready finds everything; what cannot be put in place is told in the KubeVirt object. */
async function deployed(
  settings: Informer<KubeVirt>,
  { clock, log }: OwnPartsOptions,
  signal: AbortSignal,
): Promise<void> {
  const late = new AbortController();
  const cancel = clock.after(DEPLOY_WAIT_MS, () => late.abort());
  const isDeployed = () => settings.list().some(({ status }) => status?.phase === 'Deployed');
  const done = await settings.until(isDeployed, { signal: AbortSignal.any([signal, late.signal]) });
  cancel();
  if (!done && !signal.aborted) log.warn({}, 'Not everything is installed yet; kubectl describe kubevirt -A tells why');
}

function webhook(settings: { readonly now?: Informer<KubeVirt> }) {
  const lookup = {
    configuration: () => configurationOf(settings.now?.get(`${SYSTEM_NAMESPACE}/${KUBEVIRT_NAME}`)),
    kubevirts: () => (settings.now?.list() ?? []).map((object) => objectKey(object)),
  };
  return {
    review: (path: string, review: unknown) => reviewAdmission(path, review, { lookup, newUuid: newUid }),
  };
}

function subresources(options: OwnPartsOptions): ApiHandler {
  const { clock, log } = options;
  const client = accountClient(options, SUBRESOURCES_SERVICE);
  return createSubresourcesApi({ client, nodes: options.nodes(client), clock, log });
}

function accountClient(options: OwnPartsOptions, account: string): Client {
  return clientOf(options, serviceAccountUser(SYSTEM_NAMESPACE, { name: account, uid: '' }));
}

function clientOf({ handler }: OwnPartsOptions, user: UserInfo): Client {
  return createClient(createInProcessTransport({ handler, user, userAgent: 'selfsame' }));
}
